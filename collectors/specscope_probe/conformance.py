"""What would be measured in an installed SGLang: each worker class against the table of seams."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_probe.accepts import UNCOUNTED_LOOKUPS
from specscope_probe.seams import CYCLE, DRAFT, FORWARD, PLACES, RESULTS, VERIFY, Place
from specscope_probe.source_tree import SourceTree

WORKERS: dict[str, tuple[str, ...]] = {
    "EAGLEWorkerV2": ("EagleDraftWorker",),
    "EAGLEWorker": (),
    "StandaloneWorkerV2": ("StandaloneDraftWorker", "EagleDraftWorker"),
    "StandaloneWorker": (),
    "MultiLayerEagleWorkerV2": ("MultiLayerEagleDraftWorker",),
    "FrozenKVMTPWorkerV2": ("FrozenKVMTPDraftWorker", "EagleDraftWorker"),
    "NGRAMWorker": (),
    "DFlashWorkerV2": (),
    "DFlashWorker": (),
    "DSparkWorkerV2": (),
    "UnoWorkerV2": (),
}
"""Worker class → its inner draft worker; without one it drafts itself."""

REQUIRED: dict[str, tuple[Place, ...]] = {
    "EAGLEWorkerV2": PLACES,
    "EAGLEWorker": tuple(place for place in PLACES if place is not RESULTS),
    "NGRAMWorker": (CYCLE, DRAFT, FORWARD),
}
"""Without these the probe does not do for that worker what its guide says."""

NOTES = {
    "MultiLayerEagleWorkerV2": "its drafting happens inside draft_extend, which is therefore draft time",
    "NGRAMWorker": "drafts are looked up on the CPU; after the target's forward all time counts as other",
    "DFlashWorkerV2": "one step from outside: the target's forward, the rest counts as other",
    "DFlashWorker": "one step from outside: the target's forward, the rest counts as other",
    "DSparkWorkerV2": "one step from outside: the target's forward, the rest counts as other",
    "UnoWorkerV2": "one step from outside: the target's forward, the rest counts as other",
}

RESULT_CLASSES = ("SchedulerBatchResultProcessor", "Scheduler", "SchedulerOutputProcessorMixin")
LOOPS = ("event_loop_normal", "event_loop_overlap")


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker class: seam → method that carries it, and why others are missing."""

    worker: str
    seams: dict[str, str]
    missing: dict[str, str]
    lacks: tuple[str, ...]
    """Seams without which this worker does not conform."""
    note: str


@dataclass(frozen=True, slots=True)
class Conformance:
    """An installed SGLang."""

    version: str
    loops: tuple[str, ...]
    """Event loops at which the probe attaches."""
    loaders: tuple[str, ...]
    workers: tuple[WorkerReport, ...]
    problems: tuple[str, ...]
    """Why it does not conform; none: everything promised is measured."""


def examine(tree: SourceTree) -> Conformance:
    """Return what the probe finds in that source."""
    scheduler = tree.methods("Scheduler") or frozenset()
    loops = tuple(sorted(name for name in scheduler if name.startswith("event_loop_")))
    workers = tuple(_worker(tree, name) for name in WORKERS if tree.methods(name) is not None)
    loaders = _loaders(tree)
    problems = [f"the scheduler has no {loop}" for loop in LOOPS if loop not in loops]
    problems += [f"{each.worker} lacks {seam}" for each in workers for seam in each.lacks]
    if not loaders:
        problems.append("neither plugins nor --forward-hooks: nothing loads the probe")
    if not any(each.worker in ("EAGLEWorkerV2", "EAGLEWorker") for each in workers):
        problems.append("no EAGLE worker was found")
    return Conformance(tree.version, loops, loaders, workers, (*problems, *tree.unreadable))


def _worker(tree: SourceTree, name: str) -> WorkerReport:
    holders = {
        "worker": (name,),
        "drafter": next(((inner,) for inner in WORKERS[name] if tree.methods(inner) is not None), (name,)),
        "runner": ("ModelRunner",),
        "results": RESULT_CLASSES,
    }
    seams, missing = {}, {}
    for place in PLACES:
        carrier = _carrier(tree, holders[place.owner], place)
        if place is RESULTS and name == "NGRAMWorker" and not (carrier or "").endswith(place.attributes[0]):
            missing[place.name] = UNCOUNTED_LOOKUPS
        elif carrier is None:
            missing[place.name] = f"{holders[place.owner][0]} has none of {', '.join(place.attributes)}"
        else:
            seams[place.name] = carrier
    lacks = tuple(place.name for place in REQUIRED.get(name, (CYCLE, FORWARD)) if place.name in missing)
    note = NOTES.get(name, "" if VERIFY.name in seams else "one step from outside")
    return WorkerReport(name, seams, missing, lacks, note)


def _carrier(tree: SourceTree, class_names: tuple[str, ...], place: Place) -> str | None:
    for class_name in class_names:
        methods = tree.methods(class_name) or frozenset()
        for attribute in place.attributes:
            if attribute in methods:
                return f"{class_name}.{attribute}"
    return None


def _loaders(tree: SourceTree) -> tuple[str, ...]:
    loaders = []
    if (tree.root / "plugins" / "__init__.py").is_file():
        loaders.append("plugin")
    if (tree.root / "model_executor" / "hook_manager.py").is_file():
        loaders.append("forward-hooks")
    return tuple(loaders)
