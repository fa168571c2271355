"""Convex tools: sets, norms, projections, proximal maps, conjugates and roots."""

from olx.convex import sets as sets
from olx.convex.matrix_norms import schatten_norm as schatten_norm
from olx.convex.matrix_norms import spectral_norm as spectral_norm
from olx.convex.matrix_norms import trace_norm as trace_norm
from olx.convex.norms import Norm as Norm
from olx.convex.projections import capped_simplex as capped_simplex
from olx.convex.projections import entropic_cap as entropic_cap
from olx.convex.projections import entropic_floor as entropic_floor
from olx.convex.projections import subsimplex as subsimplex
from olx.convex.projections import weighted_l1_ball as weighted_l1_ball
from olx.convex.prox import Penalty as Penalty
from olx.convex.prox import elastic_net as elastic_net
from olx.convex.prox import group_l2 as group_l2
from olx.convex.prox import indicator as indicator
from olx.convex.prox import l1 as l1
from olx.convex.prox import linf as linf
from olx.convex.prox import nuclear as nuclear
from olx.convex.prox import squared_l2 as squared_l2
from olx.convex.sets import ConvexSet as ConvexSet
from olx.convex.slab import slab as slab
from olx.convex.slab import slab_semidefinite as slab_semidefinite
