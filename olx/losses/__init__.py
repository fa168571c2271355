"""Losses of an action and an outcome, with their conjugates, proximal maps and constants."""

from olx.losses.aligned import aligned as aligned
from olx.losses.ball import BallConstants as BallConstants
from olx.losses.class_hinges import average_hinge as average_hinge
from olx.losses.class_hinges import margin_multiclass_hinge as margin_multiclass_hinge
from olx.losses.class_hinges import max_of_hinges as max_of_hinges
from olx.losses.class_hinges import multiclass_hinge as multiclass_hinge
from olx.losses.class_hinges import multiclass_squared_hinge as multiclass_squared_hinge
from olx.losses.class_hinges import multiclass_zero_one as multiclass_zero_one
from olx.losses.entropic import cross_entropy as cross_entropy
from olx.losses.entropic import exponential as exponential
from olx.losses.entropic import logistic as logistic
from olx.losses.hinges import hinge as hinge
from olx.losses.hinges import margin_hinge as margin_hinge
from olx.losses.hinges import modified_huber as modified_huber
from olx.losses.hinges import squared_hinge as squared_hinge
from olx.losses.hinges import zero_one as zero_one
from olx.losses.points import PointLoss as PointLoss
from olx.losses.points import linear_loss as linear_loss
from olx.losses.points import log_loss as log_loss
from olx.losses.residual import absolute as absolute
from olx.losses.residual import epsilon_insensitive as epsilon_insensitive
from olx.losses.residual import huber as huber
from olx.losses.residual import power as power
from olx.losses.residual import squared as squared
from olx.losses.score import ScoreLoss as ScoreLoss
