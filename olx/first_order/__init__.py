"""First-order learners: algorithms that use gradients only."""

from olx.first_order.coin_betting import cocob as cocob
from olx.first_order.coin_betting import coin_betting as coin_betting
from olx.first_order.coin_betting import coordinate_betting as coordinate_betting
from olx.first_order.dual_averaging import adagrad as adagrad
from olx.first_order.dual_averaging import rda as rda
from olx.first_order.erfi_betting import erfi_betting as erfi_betting
from olx.first_order.exponentiated_gradient import exponentiated_gradient as exponentiated_gradient
from olx.first_order.exponentiated_gradient import (
    signed_exponentiated_gradient as signed_exponentiated_gradient,
)
from olx.first_order.freegrad import freegrad as freegrad
from olx.first_order.ftrl_proximal import ftrl_proximal as ftrl_proximal
from olx.first_order.normalized_betting import normalized_betting as normalized_betting
from olx.first_order.ons_betting import ons_betting as ons_betting
from olx.first_order.pistol import pistol as pistol
from olx.first_order.pnorm_lms import adaptive_filter as adaptive_filter
from olx.first_order.pnorm_lms import pnorm_lms as pnorm_lms
from olx.first_order.scale_invariant import normalized_adagrad as normalized_adagrad
from olx.first_order.scale_invariant import (
    scale_invariant_adagrad as scale_invariant_adagrad,
)
from olx.first_order.scale_invariant import scale_invariant_pnorm as scale_invariant_pnorm
from olx.first_order.self_confident import self_confident as self_confident
from olx.first_order.strongly_convex import strongly_convex_md as strongly_convex_md
from olx.first_order.strongly_convex import strongly_convex_ogd as strongly_convex_ogd
