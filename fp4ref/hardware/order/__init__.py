"""order: which accesses PTX orders before which, and the races that it leaves.

The engine watches every access of a launch. It never looks at the order in which the
machine happened to do things: an access is ordered before another one only by program
order of one thread, barriers, fences and completion mechanisms. Two accesses of the
same bytes, one of them a write, that nothing orders are a race in every schedule.

- `knowledge`: what is ordered before a lane, as sets of ids, and the lanes of a warp;
- `access`: one access, for the check and for a report;
- `shadow`: the last accesses of every byte of a memory;
- `released`: what releases leave in a barrier, a phase or a word for acquires;
- `rules`: the failure classes, with the rule and the remedy of each;
- `race`: races, the verdict of a run and its report;
- `thread_order`: barriers, fences and words, through which threads order each other;
- `tensormap_proxy`: maps that a kernel writes, and the copies that use them;
- `unobserved`: the engine that watches nothing;
- `engine`: the `Order` that the units of the machine talk to;
- `async_access`: operations of the async proxy and of tcgen05, and their completion.
"""
