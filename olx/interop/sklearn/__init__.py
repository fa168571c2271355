"""Learners as estimators of scikit-learn; needs scikit-learn, which is in the extra `lab`."""

from olx.interop.sklearn.boosted import BoostedClassifier as BoostedClassifier
from olx.interop.sklearn.classifier import OnlineClassifier as OnlineClassifier
from olx.interop.sklearn.experts import ExpertRegressor as ExpertRegressor
from olx.interop.sklearn.regressor import OnlineRegressor as OnlineRegressor
from olx.interop.sklearn.search import OnlineSearchCV as OnlineSearchCV
