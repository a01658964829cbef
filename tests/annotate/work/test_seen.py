"""What has come before, in arrays: as a dictionary would have it."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from annotate.work.unit_entry import Seen

# Few texts, so that many come again; one half of a digest alone may be that of another, too.
HALVES = st.sampled_from([b"\0" * 8, b"\0" * 7 + b"\1", b"\xff" * 8, b"abcdefgh"])
DIGESTS = st.tuples(HALVES, HALVES).map(b"".join) | st.binary(min_size=16, max_size=16)


@given(st.lists(st.lists(DIGESTS, max_size=6), max_size=12))
def test_a_text_is_found_from_the_time_on_that_it_was_added(batches):
    seen, known = Seen(), {}
    for batch in batches:
        assert seen.find(batch) == {digest: known[digest] for digest in batch if digest in known}
        new = {digest: len(known) + place for place, digest in enumerate(dict.fromkeys(batch)) if digest not in known}
        seen.add(new)
        known |= new
    assert seen.find(known) == known


def test_few_arrays_are_looked_through_however_many_texts_there_are():
    seen = Seen()
    digests = [hashlib.blake2b(str(n).encode(), digest_size=16).digest() for n in range(20_000)]
    for start in range(0, len(digests), 100):
        seen.add({digest: start + n for n, digest in enumerate(digests[start : start + 100])})
    assert len(seen.runs) < 8
    assert seen.find(digests) == {digest: n for n, digest in enumerate(digests)}
    assert not seen.find([b"nothing of these"])
