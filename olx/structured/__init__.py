"""Structured outputs: sequences of labels, their losses and learners with their cost bounds."""

from olx.structured.additive import averaged_weights as averaged_weights
from olx.structured.chain import ChainWeights as ChainWeights
from olx.structured.chain import Parts as Parts
from olx.structured.chain import chain as chain
from olx.structured.chain import indexed_chain as indexed_chain
from olx.structured.losses import PartsLoss as PartsLoss
from olx.structured.losses import crf as crf
from olx.structured.losses import decoded_cost as decoded_cost
from olx.structured.losses import max_loss as max_loss
from olx.structured.losses import prediction_loss as prediction_loss
from olx.structured.sequences import Sequences as Sequences
from olx.structured.sequences import padded_rounds as padded_rounds
from olx.structured.structure import Structure as Structure
from olx.structured.structure import decoded as decoded
from olx.structured.structure import structured_model as structured_model
from olx.structured.structured_passive_aggressive import (
    structured_aggressive as structured_aggressive,
)
from olx.structured.structured_passive_aggressive import (
    structured_passive_aggressive as structured_passive_aggressive,
)
from olx.structured.structured_perceptron import self_tuned_structured as self_tuned_structured
from olx.structured.structured_perceptron import structured_perceptron as structured_perceptron
