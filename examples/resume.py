"""Stop in mid-epoch and go on in another run, with another number of workers: nothing twice, nothing lost."""

import json

import numpy as np
import wellread
from _images import cells, folder

path = cells()
state_file = folder() / "state.json"
choices = {"batch_size": 16, "shuffle": True, "seed": 42, "random_crop": 48, "flip": True}

# What an epoch has that nobody stops.
whole = list(wellread.DataLoader(path, num_workers=2, **choices))

loader = wellread.DataLoader(path, num_workers=2, **choices)
for done, batch in enumerate(loader, 1):
    assert np.array_equal(batch, whole[done - 1])
    if done == 5:
        # Batches that were read ahead and not delivered are not lost: the state is that of the batch delivered last.
        state_file.write_text(json.dumps(loader.state_dict()))
        break
print(f"stopped after {done} of {len(loader)} batches: {state_file.read_text()}")

# Another process, as it were: another number of workers, the same images to the bit, random crops included.
again = wellread.DataLoader(path, num_workers=1, **choices)
again.load_state_dict(json.loads(state_file.read_text()))
rest = list(again)
assert len(rest) == len(whole) - 5
assert all(np.array_equal(a, b) for a, b in zip(rest, whole[5:], strict=True))
print(f"went on with {len(rest)} batches, to the bit those of a run that was not stopped")
print(f"the next iteration is epoch {again.epoch}")
