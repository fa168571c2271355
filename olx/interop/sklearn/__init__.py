"""Learners as estimators of scikit-learn; needs scikit-learn, which is in the extra `lab`."""

from olx.interop.sklearn.classifiers import BoostedClassifier as BoostedClassifier
from olx.interop.sklearn.classifiers import OnlineClassifier as OnlineClassifier
from olx.interop.sklearn.regressors import ExpertRegressor as ExpertRegressor
from olx.interop.sklearn.regressors import OnlineRegressor as OnlineRegressor
from olx.interop.sklearn.search import OnlineSearchCV as OnlineSearchCV
