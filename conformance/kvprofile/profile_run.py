"""A whole profile: measures all cases, each beside its limit and its peers, into one record."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import replace

from kvprofile import peers
from kvprofile.budget import Budget
from kvprofile.case import Case
from kvprofile.kept_memory import kept
from kvprofile.measure import Clock, Pace, Party, metered, rounds
from kvprofile.modes import modes
from kvprofile.operation import Job, Operation
from kvprofile.peers import Peer, host_arrays
from kvprofile.peers.correct import reason
from kvprofile.quartiles import ratios, scaled, spread
from kvprofile.subject import Subject
from kvprofile.workloads import OPERATIONS
from kvspec.contract import Description
from kvspec.contract.timing import BEYOND, Streams
from kvspec.records.profile import LimitRecord, Measurement, PeerTime, SkippedCase
from kvspec.traffic import LIMITS, Traffic

GB = 1e9
AT_ONCE = 16
"""Operations of a peer that are timed together on a GPU. Each may be many launches, and a stream has no room for
thousands."""

WARM_UP = 0.5
"""Seconds of copies before anything is measured."""

Say = Callable[[str], None]

Keep = Callable[[Measurement | SkippedCase], None]
"""Takes each case as soon as it is measured or left out."""


class Left(Exception):
    """A case that is not measured, and why."""


@dataclass
class Session:
    """An adapter being profiled. `measured` and `skipped` grow case by case: an interrupt loses one."""

    adapter: Any
    said: Description
    peers: peers.Found
    budget: Budget
    pace: Pace
    say: Say
    keep: Keep = lambda case: None
    measured: list[Measurement] = field(default_factory=list)
    skipped: list[SkippedCase] = field(default_factory=list)
    streamed: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LIMITS})
    """Seconds of every round of each limit."""
    streams: Streams | None = None
    clock: str = ""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the device's last-level cache; 0 where nobody knows."""
        return int(getattr(self.adapter, "cache_bytes", 0))

    def run(self, cases: Sequence[Case]) -> None:
        """Measure all cases. Late cases get fewer rounds, but at least one."""
        until = time.perf_counter() + self.pace.whole
        if hasattr(self.adapter, "elapsed"):
            self.say("the limits of the device")
            self.clock, self.streams = self.adapter.clock(), self.adapter.streams(self.budget.share // 2)
            self._warm()
            self._limits()
        for i, case in enumerate(cases):
            pace = self.pace.among(len(cases) - i, until - time.perf_counter())
            self._case(case, f"[{i + 1}/{len(cases)}] {case.id}", pace)

    def _warm(self) -> None:
        """Copy for some time, because an idle device is slow at first."""
        assert self.streams is not None
        until = time.perf_counter() + WARM_UP
        while time.perf_counter() < until:
            self.adapter.elapsed(self.streams.copy)

    def _limits(self) -> None:
        """Measure all limits first, also those that no case is compared with."""
        assert self.streams is not None
        parties = {name: self._limit(name, self.streams) for name in self.streams.limits}
        rounds([*parties.values()], self.pace)
        for name, party in parties.items():
            self._streamed(name, party)

    def _streamed(self, name: str, party: Party) -> None:
        self.streamed[name] += [t.device for t in party.taken if t.device is not None]

    def _limit(self, name: str, streams: Streams) -> Party:
        work: Callable[[], None] = getattr(streams, name)
        return self._timed(f"limit {name}", Job(lambda i: work()))

    def _streams_for(self, moved: Traffic, rotates: int, cached: bool) -> Streams | None:
        """Give streams with the footprint of a case that rotates through so many bytes: a power of two, at most
        that of the whole streams. None where a cache of the device would hold the case and not the limit."""
        whole = self.streams
        limit = None if whole is None else whole.limit(moved)
        if whole is None or limit is None or rotates >= (most := whole.moved(limit)):
            return whole
        if whole.over is None:
            return None if cached else whole
        part = 1 << max(0, rotates - 1).bit_length()
        return whole if part >= most else whole.over(whole.nbytes * part // most)

    def _timed(self, name: str, job: Job) -> Party:
        if self.streams is None:
            return Party(name, job)
        return Party(name, job, self.adapter.elapsed, self.adapter.synchronise)

    def _case(self, case: Case, head: str, pace: Pace) -> None:
        began = time.perf_counter()
        try:
            with kept():
                found = self._measured(case, pace)
        except Exception as e:
            reason = str(e) if isinstance(e, Left) else f"{type(e).__name__}: {e}"
            self._leave_out(case.id, reason)
            self.say(f"{head}: not measured: {reason}")
        else:
            self.measured.append(found)
            self.keep(found)
            self.say(f"{head}: {told(found)} ({time.perf_counter() - began:.1f} s)")

    def _leave_out(self, what: str, why: str) -> None:
        self.skipped.append(SkippedCase(id=what, reason=why))
        self.keep(self.skipped[-1])

    def _measured(self, case: Case, pace: Pace) -> Measurement:
        operation = OPERATIONS[case.operation]
        self._demand(case, operation)
        try:
            memory = self.budget.rotated(operation.held(case))
            subject = Subject(self.adapter, case, operation.config(case), memory)
            own, moved = self._timed("", operation.job(subject)), operation.traffic(case)
            rotates = subject.rotates(moved.read if moved.flops else operation.held(case))
            cached = bool(moved.bytes) and rotates < BEYOND * self.cache_bytes
            streams = self._streams_for(moved, rotates, cached)
            moved = moved._replace(limit=None if streams is None else streams.limit(moved))
            limit = None if streams is None or moved.limit is None else self._limit(moved.limit, streams)
            others = list(self._others(case, memory))
            rounds([own, *([limit] if limit else []), *others], pace)
            if limit is not None and streams is self.streams:
                self._streamed(str(moved.limit), limit)
            counted = metered(self.adapter, own)
            found = self._told(case, operation, moved, own, streams, limit, others, counted)
            return replace(found, in_cache=True) if cached else found
        finally:
            host_arrays.shared.cache_clear()
            gc.collect()
            getattr(self.adapter, "give_back", lambda: None)()

    def _demand(self, case: Case, operation: Operation) -> None:
        """Leave out cases that the adapter does not offer or that do not fit."""
        missing = [name for name in operation.needs if name not in self.said.chapters]
        if missing:
            raise Left(f"the adapter does not declare {', '.join(missing)}")
        config, held = operation.config(case), operation.held(case)
        if not self.said.supports(config) or case.rows > (self.said.largest_append or case.rows):
            raise Left("beyond the limits that the adapter declares")
        if held > self.budget.share:
            most = f"each party may hold {self.budget.share >> 20}, since all share a quarter of the free memory"
            raise Left(f"it holds {held >> 20} MiB, and {most}: name fewer --peers, or free memory")

    def _others(self, case: Case, memory: int) -> Iterator[Party]:
        """Give the peers that do this work; one that does it wrongly or fails gets no time."""
        for peer in self.peers.peers:
            clock = self._clock_of(peer)
            if clock is not None:
                cast(Any, peer).elapsed = clock
            try:
                job = peer.job(case, memory)
            except Exception as e:  # a peer's library may raise anything, and the case goes on
                self._leave_out(f"{case.id} by {peer.name}", reason(e))
            else:
                if job is not None:
                    yield Party(peer.name, job, clock, peer.wait, at_once=AT_ONCE)

    def _clock_of(self, peer: Peer) -> Clock | None:
        """Give the adapter's own clock for the peer's stream; None if there is no such."""
        clock_of, stream = getattr(self.adapter, "clock_of", None), getattr(peer, "stream", None)
        return None if clock_of is None or stream is None else cast(Clock | None, clock_of(stream))

    def _told(
        self,
        case: Case,
        operation: Operation,
        moved: Traffic,
        own: Party,
        streams: Streams | None,
        limit: Party | None,
        others: Sequence[Party],
        counted: dict[str, float] | None,
    ) -> Measurement:
        totals = [t.total for t in own.taken]
        busy = [t.total if t.device is None else t.device for t in own.taken]
        rates = [moved.bytes / max(t, 1e-12) / GB for t in busy]
        return Measurement(
            id=case.id,
            operation=operation.name,
            words=operation.words,
            model=case.model.name,
            kind=operation.needs[0],
            config={**operation.config(case).to_json(), **own.job.about},
            context=case.context,
            rows=case.rows,
            batch=case.batch,
            dtype=case.cast,
            bytes_read=moved.read,
            bytes_written=moved.written,
            flops=moved.flops,
            operations=own.operations,
            rounds=len(own.taken),
            device_ms=scaled(busy, 1e3) if self.streams is not None else None,
            host_ms=scaled([t.host for t in own.taken], 1e3),
            total_ms=scaled(totals, 1e3),
            rate=spread(rates) if moved.bytes else None,
            limit=moved.limit,
            limit_bytes=UNSET if streams is None or moved.limit is None else streams.moved(moved.limit),
            fraction=None if streams is None or limit is None else ratios(rates, _rates(streams, moved, limit)),
            modes=modes([t * 1e3 for t in totals]) or UNSET,
            metered=counted,
            peers=[self._peer(party, own) for party in others],
        )

    def _peer(self, party: Party, own: Party) -> PeerTime:
        """By the device's clock if it timed both."""
        on_device = None not in [t.device for t in (*party.taken, *own.taken)]
        times, mine = ([t.device or t.total if on_device else t.total for t in p.taken] for p in (party, own))
        ms, ratio, form = scaled(times, 1e3), ratios(mine, times), party.job.about.get("form") or UNSET
        return PeerTime(peer=party.name, ms=ms, ratio=ratio, form=form, on_device=on_device or UNSET)

    def limits(self) -> list[LimitRecord]:
        """Summarise each limit over all rounds in which it took part."""
        return [self._limit_record(name, seconds) for name, seconds in self.streamed.items() if seconds]

    def _limit_record(self, name: str, seconds: list[float]) -> LimitRecord:
        assert self.streams is not None
        moved = self.streams.moved(name)
        rate = spread([moved / s / GB for s in seconds])
        return LimitRecord(name=name, bytes=moved, rounds=len(seconds), rate=rate)


def _rates(streams: Streams, moved: Traffic, limit: Party) -> list[float]:
    """Give the GB/s of a limit, round by round."""
    nbytes = streams.moved(str(moved.limit))
    return [nbytes / max(t.device or t.total, 1e-12) / GB for t in limit.taken]


def told(found: Measurement) -> str:
    """A measurement in a few words."""
    words = [f"{(found.device_ms or found.total_ms).median:.3g} ms"]
    if found.rate is not None:
        words.append(f"{found.rate.median:.3g} GB/s")
    if found.fraction is not None:
        words.append(f"{found.fraction.median:.2f} of {found.limit}")
    words += ["in cache"] if found.get("in_cache") else []
    if modes := found.get("modes"):
        words.append(f"two modes, {modes[0].ms:.3g} and {modes[1].ms:.3g} ms")
    words += [f"{p.ratio.median:.2f} of {p.peer}'s time" for p in found.peers]
    return ", ".join(words)
