"""What is known of the requests that are in the machine: kept from when they come until they are done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.files.scenario.requests import Batch, Requests
from lstmsim.model.dispatch import DISPATCH
from lstmsim.model.scenario import cores_at_once
from lstmsim.studies.serve.alone import Alones
from lstmsim.traffic.metrics import Collector
from lstmsim.traffic.tenants import NEVER

__all__ = ["Inside"]

Ints = NDArray[np.int64]


class Inside:
    """Hands requests to the engine as they come, and to the collector once they are done.

    asked: the requests.

    Due times and tenants are kept until a request is done, so memory grows with the requests in the machine.
    """

    def __init__(self, asked: Requests) -> None:
        self._asked = asked
        jobs, self._alones = asked.scenario.jobs, Alones(asked.scenario.chip)
        self._keys = np.array([DISPATCH[job.dispatch](job)[0] for job in jobs])
        self._deadlines = np.array([-1 if job.deadline is None else job.deadline for job in jobs])
        self._seats = np.array([max(1, len(cores_at_once(asked.scenario.chip, job))) for job in jobs])
        #: Of each template, cycles alone and whether it ever stalls; -1 before one of its requests is done.
        self._alone: Ints = np.full((2, len(jobs)), -1)
        self._came = 0
        #: Numbers of the requests inside, ascending, with their due times, their tenants, and for how long they paused.
        self._inside: Ints = np.zeros((4, 0), dtype=np.int64)

    def chunks(self) -> Iterator[Ints]:
        """Give what comes as a `Feed` takes it."""
        for batch in self._asked.coming:
            own = self._deadlines[batch.template]
            deadlines = np.where(own < 0, batch.due, own)
            due = np.where(deadlines < 0, NEVER, batch.arrival + deadlines)
            numbers = np.arange(self._came, self._came + len(due))
            self._came += len(due)
            more = np.stack([numbers, due, batch.tenant, np.zeros_like(due)])
            self._inside = np.concatenate([self._inside, more], axis=1)
            yield np.stack([batch.arrival, batch.template, self._ranks(batch, deadlines)], axis=1)

    def _ranks(self, batch: Batch, deadlines: Ints) -> Ints:
        """The key of each request."""
        keys = self._keys[batch.template]
        # a template without a deadline has a key that does not count from the arrival
        own = np.flatnonzero((self._deadlines[batch.template] < 0) & (deadlines >= 0))
        kinds, place = np.unique(np.stack([batch.template[own], deadlines[own]]), axis=1, return_inverse=True)
        for kind, (template, deadline) in enumerate(kinds.T.tolist()):
            job = self._asked.scenario.jobs[template]
            key, from_arrival = DISPATCH[job.dispatch](replace(job, deadline=deadline))
            of_kind = own[place.ravel() == kind]
            keys[of_kind] = key + (batch.arrival[of_kind] if from_arrival else 0)
        return keys

    def pause(self, collector: Collector, pauses: Ints) -> None:
        """Hand pauses to the collector, and note them with their requests.

        pauses: as `Feed.pauses` gives them.
        """
        numbers, _, _, since, until = pauses.T
        np.add.at(self._inside[3], np.searchsorted(self._inside[0], numbers), until - since)
        # a request that may pause has one thread
        collector.pause(np.stack([since, until, np.ones_like(since)]))

    def collect(self, collector: Collector, numbers: Ints, templates: Ints, table: Ints) -> Ints:
        """Hand requests that are done to the collector, and give the places of their tenants.

        numbers, templates, table: as `Feed.results` gives them.
        """
        places = np.searchsorted(self._inside[0], numbers)
        due: Ints = self._inside[1, places]
        tenants: Ints = self._inside[2, places]
        paused: Ints = self._inside[3, places]
        self._inside = np.delete(self._inside, places, axis=1)
        core, _, start, finish, arrived, _, taken = table.T
        served = core >= 0
        alone, stalls = self._by_themselves(templates)
        collector.add_many(
            numbers,
            arrived,
            start,
            np.where(served, finish, start),
            tenants=tenants,
            due=due,
            servers=np.where(served, np.maximum(self._seats[templates], np.bitwise_count(taken)), 0),
            alone=alone,
            cores=core,
            stalls=stalls,
            paused=paused,
        )
        return tenants

    def _by_themselves(self, templates: Ints) -> Ints:
        """Cycles alone of each request, and whether it ever stalls."""
        for template in np.flatnonzero(np.bincount(templates, minlength=self._alone.shape[1])).tolist():
            if self._alone[0, template] < 0:
                alone = self._alones(self._asked.scenario.jobs[template])
                self._alone[:, template] = alone.latency_cycles, alone.stalls
        known: Ints = self._alone[:, templates]
        return known
