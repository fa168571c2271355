"""Online learning in JAX: learners as triples of pure functions over pytrees."""

import sys as _sys
from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from olx import convex as convex
from olx import facts as facts
from olx import keep as keep
from olx import losses as losses
from olx import mirrors as mirrors
from olx import record as record
from olx import regularizers as regularizers
from olx import schedules as schedules
from olx import streams as streams
from olx.certificate import Certificate as Certificate
from olx.convex.norms import Norm as Norm
from olx.core import Adversary as Adversary
from olx.core import Batch as Batch
from olx.core import Feedback as Feedback
from olx.core import Learner as Learner
from olx.core import Process as Process
from olx.core import Rounds as Rounds
from olx.core import Run as Run
from olx.core import Trace as Trace
from olx.engine.batch import batch as batch
from olx.engine.batch import grid as grid
from olx.engine.certify import certify as certify
from olx.engine.checkpoint import checkpoint as checkpoint
from olx.engine.decision import decision as decision
from olx.engine.rollout import play as play
from olx.engine.rollout import rollout as rollout
from olx.engine.run import run as run
from olx.engine.run import sweep as sweep
from olx.engine.save import load as load
from olx.engine.save import save as save
from olx.engine.serve import Step as Step
from olx.engine.serve import predict as predict
from olx.engine.serve import step as step
from olx.facts import Facts as Facts
from olx.frameworks import ascents as ascents
from olx.frameworks import games as games
from olx.frameworks.dual_ascent import dual_ascent as dual_ascent
from olx.frameworks.ftrl import ftrl as ftrl
from olx.frameworks.implicit import implicit as implicit
from olx.frameworks.lift import affine as affine
from olx.frameworks.lift import affine_dot as affine_dot
from olx.frameworks.lift import dot as dot
from olx.frameworks.lift import linear as linear
from olx.frameworks.lift import model as model
from olx.frameworks.md import md as md
from olx.frameworks.md import ogd as ogd
from olx.frameworks.omd import hedge as hedge
from olx.frameworks.omd import omd as omd
from olx.frameworks.optimistic import optimistic as optimistic
from olx.frameworks.optimistic import optimistic_md as optimistic_md
from olx.frameworks.repeated_game import repeated_game as repeated_game
from olx.frameworks.scale_free import scale_free as scale_free
from olx.frameworks.scale_free_md import scale_free_md as scale_free_md
from olx.mirrors.base import MirrorMap as MirrorMap
from olx.mirrors.base import mirror_map as mirror_map
from olx.needs import Need as Need
from olx.theorem import Theorem as Theorem

if _TYPE_CHECKING:
    from olx import alignment as alignment
    from olx import boosting as boosting
    from olx import classification as classification
    from olx import experts as experts
    from olx import first_order as first_order
    from olx import hindsight as hindsight
    from olx import interop as interop
    from olx import lab as lab
    from olx import layers as layers
    from olx import meta as meta
    from olx import multiclass as multiclass
    from olx import ranking as ranking
    from olx import second_order as second_order
    from olx import structured as structured
    from olx import testing as testing
    from olx import theorems as theorems
    from olx import tune as tune
    from olx.hindsight.best import best_in_hindsight as best_in_hindsight
    from olx.hindsight.regret import regret as regret
    from olx.hindsight.regret import shifting_regret as shifting_regret

__version__ = _version("olx")

# Folders of algorithms are loaded when they are first used, so that `import olx` stays quick.
_LAZY_PACKAGES = (
    "alignment",
    "boosting",
    "classification",
    "experts",
    "first_order",
    "hindsight",
    "interop",
    "lab",
    "layers",
    "meta",
    "multiclass",
    "ranking",
    "second_order",
    "structured",
    "testing",
    "theorems",
    "tune",
)
_OF_HINDSIGHT = ("best_in_hindsight", "regret", "shifting_regret")


def __getattr__(name: str) -> _Any:
    if name in _LAZY_PACKAGES:
        return _import_module(f"olx.{name}")
    if name in _OF_HINDSIGHT:
        return getattr(_import_module("olx.hindsight"), name)
    homes = [] if name.startswith("_") else _homes(name)
    if homes:
        raise AttributeError(f"olx has no `{name}`; it is {' or '.join(homes)}.", name=name)
    own = _sys.modules[__name__]  # Python itself then names one that is spelled alike
    raise AttributeError(f"module 'olx' has no attribute {name!r}", name=name, obj=own)


def _homes(name: str) -> list[str]:
    """Where a name lives that is not directly in olx."""
    apart = ("interop", "lab", "testing", "theorems")
    packages = [package for package in _LAZY_PACKAGES if package not in apart]
    packages += ["mirrors", "losses", "regularizers", "schedules", "convex", "streams"]
    modules = {package: _import_module(f"olx.{package}") for package in packages}
    modules |= {"ascents": ascents, "games": games}
    found = {home: vars(module).get(name) for home, module in modules.items()}
    own = lambda thing: str(getattr(thing, "__module__", None)).startswith("olx.")
    return [f"`olx.{home}.{name}`" for home, thing in found.items() if own(thing)]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_PACKAGES, *_OF_HINDSIGHT})
