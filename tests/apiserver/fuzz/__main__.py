"""A long run: `python -m tests.apiserver.fuzz --minutes 10 --seed 1`; prints each broken promise once."""

from __future__ import annotations

import argparse
import re

import anyio

from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.fuzz.player import Broken, Player


async def run(minutes: float, seed: int, failures_max: int) -> int:
    clock = SystemClock()
    end = clock.monotonic() + minutes * 60
    player = await Player.started()
    seen: set[str] = set()
    first = seed
    while clock.monotonic() < end and len(seen) < failures_max:
        try:
            await player.play(seed)
        except Broken as broken:
            text = str(broken)
            found = re.search(r"(\w+Error|\w+Exception): [^\"\\]{0,40}", text)
            key = found[0] if found else re.sub(r"\d+", "", text[:120])
            if key not in seen:
                seen.add(key)
                print(f"--- {text[:3000]}\n", flush=True)
            player = await Player.started()
        seed += 1
        if seed % 200 == 0:
            # In an old player uids and versions grow, and the objects that it created stay.
            codes, player = player.codes, await Player.started()
            player.codes = codes
    print(f"seeds {first} to {seed}: {len(seen)} broken promises; {dict(player.codes)}")
    return len(seen)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=int, default=20)
    options = parser.parse_args()
    raise SystemExit(bool(anyio.run(run, options.minutes, options.seed, options.failures)))
