"""The neutral program that targets make and engines run, and the trace of a run. This room knows no target.

Rules on how tasks (`lstmsim.program.program.Task`) come, are admitted, pause and are turned away:

**Coming.** Several tasks may arrive in one cycle. The tasks that come `after` no other task and `behind` no gate begin
to wait first, then the others; both groups are in the order of the program. A task may come at once (`release` 0) after
a task whose queue was full in this same cycle, or behind a gate that an admission of this same cycle has opened
(`Task.starts`). Such a task begins to wait when all tasks above have been admitted or not. Then tasks are admitted
again.

**Leaving at once.** A task without any operation finishes in the cycle of its admission, and so may a task that lasted
`until` an admission of this cycle. They do so when all that wait have been admitted or not. Then all that follows takes
effect in this same cycle, as it does at the beginning of a cycle, and tasks come and are admitted again.

**Admission.**

* The rank of a task is `key`, plus its arrival if `key_from_arrival`. Waiting tasks are looked at in the order of
  (rank, arrival, position). A task that was paused waits again with the arrival that it had.
* A place is a core with its partners. A task can take a place if every core of it has a free thread and room for the
  task's `content`. Of these places a task takes one that holds the content, if it is `affine`; then the place with the
  fewest occupied threads on its cores; then the place of the lowest cores. There it takes the lowest free threads; on a
  core that `mirrors` others it takes those that stand for the threads of its own cores.
* A task without a place keeps the tasks behind it off all cores that it could use and that are not `shared`. The tasks
  behind neither take threads there (which matters only if some task needs more than a free thread) nor ask for one.

**Spreading.** A task with `wide` that can take a place looks at the tasks that wait at that moment: new or paused,
looked at already in this cycle or not. If a place of another task has one of its cores, it takes its own place as
other tasks do. If not, it takes, instead of that one thread, the lowest free thread on each of the first m of its
`cores` that have a free thread, in the order of `cores`. Here m is the largest number for which there is a `wide` and
as many cores have a free thread. If there is no such m, it takes its place as other tasks do. It keeps its threads
until it finishes.

**Turned away.**

* `queue_limit` counts in the cycle in which a task comes, before any task is admitted. Of the tasks that wait before
  it, those that may use the same places count; tasks that were paused do not. The task is turned away if they are at
  least as many as `queue_limit` and the free threads on the first cores of these places together.
* `patience` counts in the cycle that comes `patience` + 1 cycles after the arrival of a task. A task that still waits
  then is turned away, before tasks that come are counted and before any task is admitted. So a task still takes a place
  that is there exactly `patience` cycles after its arrival. A task that has been admitted once is not turned away.

**Preemption.**

* A task that `preempts` and has no place asks for a thread of a running task of a larger rank. It asks in every cycle
  again: once, in its turn, when no more task comes in that cycle.
* It looks at the threads of its cores (the first cores of its places) that no task before it keeps. If one of these
  threads is about to pause already, for any task, it asks for none. Else it asks one task of a larger rank that was not
  asked yet: the task with the largest rank, of these the one admitted (or resumed) last, of these the one on the
  highest core and thread.
* Each stream of the asked task goes on to the first boundary of iterations that none of its streams has passed. When
  all effects of its operations have come about (results, and delays that other operations wait for), at the earliest in
  the next cycle, the task is paused. Its thread is free, and the task waits for a thread of the same core.
* A paused task goes on with that iteration. Its buffers are empty, and needs of earlier iterations hold nothing back.
* If the boundary is the end of the asked task, the task just finishes and is not about to pause. So another task may be
  asked in the next cycle.
* Tasks with partners, content or `wide` neither preempt nor pause. Where a task preempts others, the program has no
  gates, and each task has an operation.
"""
