"""Which anomaly a mutant is: by its class, or by its id where it is not what most of its class are."""

from __future__ import annotations

from kvconform.mutants.common import table
from kvconform.mutants.mutant import Mutant

OF_CLASS = {
    "POS": "wrong-position",
    "RING": "slot-order",
    "MASK": "wrong-mask",
    "WIN": "window-off-by-one",
    "GROW": "lost-rows",
    "TRIM": "missing-refusal",
    "SPEC": "stale-tail",
    "SNAP": "half-restored",
    "MERGE": "lost-rows",
    "SLOT": "wrong-sequence",
    "PAGE": "wrong-page",
    "PAD": "padding-seen",
    "DTYPE": "wrong-rounding",
    "ASYNC": "stale-capture",
    "BOUND": "missing-refusal",
    "GQA": "wrong-head",
    "ROPE": "wrong-position",
    "XATTN": "wrong-mask",
    "MEM": "miscounted-memory",
    "REUSE": "missing-refusal",
    "LAYER": "desynchronised-layers",
    "control": "lost-rows",
}
"""What most mutants of a class are. A systematic mutant is none before it is found."""

OTHERS = {
    "stale-tail": (
        "POS-02/LastOneStays TRIM-09/GivesUp TRIM-01/OneTooMany POS-09/StaysLonger "
        "DTYPE-09/CutMissesTheNewest SNAP-02/NotCleared"
    ),
    "padding-seen": (
        "POS-19/CapacityAsLength GROW-08/ExtentAsLength GROW-08/BoundAsLength "
        "RING-04/AsWideAsTheOffset SLOT-05/PaddedRows "
        "REUSE-01/ForksWhatIsReserved MERGE-06/PlaceholderOfTheOther RING-07/CutAtTheOffset "
        "REUSE-10/LongestLoaded SNAP-12/FillerSynced"
    ),
    "wrong-page": "SPEC-03/SideBySide MERGE-03/NextPage",
    "lost-rows": (
        "SPEC-01/LosesTheLast SPEC-09/GoesOneTooFar SNAP-08/SavedUpToTheIndex RING-02/AfterEviction "
        "DTYPE-10/NewestNotCounted REUSE-08/BehindWhateverIsThere MEM-08/OneShortOfThePosition "
        "POS-13/CountedToThePage PAGE-15/WholePagesShared ASYNC-07/ClearedLate BOUND-02/AsManyAsFit "
        "SPEC-08/EvictsAtOnce"
    ),
    "hole": "POS-16/StepLeavesASlotOut POS-16/SlotLeftOut POS-16/SlotOfAPageLeftOut POS-16/BehindItsSlot",
    "overwritten-rows": (
        "RING-01/WrapsOneLate RING-10/RollsWhenFull RING-12/FirstRowsRemain GROW-03/WrapsElsewhere "
        "POS-10/OnlyPromptsCount BOUND-06/In32Bits PAGE-09/FrozenTable PAGE-12/InPlace "
        "ASYNC-08/FreedWithTheFirst MERGE-02/EvictedFromTheParent DTYPE-07/NarrowIndices "
        "PAGE-07/Unbounded"
    ),
    "keys-without-values": (
        "MERGE-04/KeysJoinedTwice SNAP-14/KeysWithoutValues SNAP-14/KeysOnly PAGE-03/KeysOnly PAGE-05/AsWideAsKeys"
    ),
    "stale-cursor": "TRIM-02/OffsetInTheRing TRIM-14/RebasedOnce",
    "wrong-position": "SPEC-06/KeepsAnother PAD-02/PaddingFirst",
    "wrong-sequence": (
        "MASK-03/HiddenForOneForAll PAD-05/OneForTheBatch MASK-14/InBatchesOfTwo MASK-22/LongestLength"
    ),
    "desynchronised-layers": (
        "SPEC-02/OneForgets TRIM-05/AsksLayerZero TRIM-05/LengthOfLayer0 TRIM-05/FirstLayerSpeaks "
        "TRIM-05/Layer0Alone SNAP-06/LastLayerSaved MASK-05/MadeOnce MASK-16/WindowOfTheFirst "
        "REUSE-05/AskedOfTheWidest ROPE-09/OneBase"
    ),
    "window-off-by-one": "MASK-18/WidthFromTheOffset PAD-10/PaddingInTheWindow GROW-05/CapOfTheWindow",
    "logical-order-mask": "MASK-21/UpperLeft MASK-10/FullWidth PAD-04/CountedInTheChunk RING-05/SlotOrder",
    "wrong-mask": "POS-11/QueriesLeft LAYER-03/FullLayer DTYPE-06/NearlyZero GQA-04/OverKvHeads",
    "silent-no-op": "TRIM-08/DeafToRollback POS-19/TrimsFromTheStep POS-06/IgnoresTheFull",
    "missing-refusal": (
        "SPEC-07/NobodyAsks SNAP-12/SavesInBetween POS-06/OnePastTheEnd POS-18/LedgerKeepsAll "
        "MERGE-01/ForksWhatIsGone GQA-03/OtherHeads GQA-01/HeadsIgnored SLOT-02/CountsPlaces"
    ),
    "needless-refusal": "BOUND-01/InOnePiece",
    "changed-though-refused": "POS-05/CountsWhatFailed MEM-09/Leaking",
    "aliased-snapshot": "MEM-04/SavedByReference",
    "aliased-array": "ASYNC-04/NotWaitedFor",
    "stale-capture": "SNAP-05/OldHandles",
    "needless-traffic": "GROW-08/Anew ASYNC-04/Offloaded ASYNC-09/Clearing",
    "miscounted-memory": "GROW-02/OneBlock GROW-03/PastTheWindow PAGE-14/Eager",
    "doubled-rows": "XATTN-01/GrowingEncoding",
}
"""Those that are something else than most of their class."""

BY_ID = {id_: anomaly for anomaly, ids in OTHERS.items() for id_ in ids.split()}


def anomaly(mutant: Mutant) -> str:
    """The id of the anomaly; empty for a systematic mutant."""
    if mutant.cls == table.CLASS:
        return mutant.id.partition("/")[0]
    return BY_ID.get(mutant.id) or OF_CLASS.get(mutant.cls, "")
