# Reads a trace by Perfetto's own descriptors, and prints how many events of each kind it has, and the last value of each counter.
import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def walk(message):
    """Fails at a field that Perfetto does not know."""
    assert not len(UnknownFieldSet(message)), message
    for field, value in message.ListFields():
        if field.message_type:
            for part in [value] if hasattr(value, "ListFields") else value:
                walk(part)


trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
walk(trace)
names, kinds, counters = {}, collections.Counter(), {}
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert not track.parent_uuid or track.parent_uuid in names
        names[track.uuid] = track.name
        if track.HasField("counter"):
            assert track.counter.unit == track.counter.UNIT_SIZE_BYTES
    else:
        event = packet.track_event
        assert event.track_uuid in names and packet.HasField("timestamp")
        kinds[TrackEvent.Type.Name(event.type)] += 1
        if event.type == TrackEvent.TYPE_COUNTER:
            counters[names[event.track_uuid]] = event.counter_value
print(json.dumps([kinds, counters]))
