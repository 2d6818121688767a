// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture as trace events, which Perfetto and chrome://tracing open: complete events (`"ph": "X"`) and instant
//! ones (`"i"`) with times in microseconds, a process for each run and a thread for each track.

use serde_json::{Value, json};

use super::{Picture, Span};

/// Returns a span as an event: a complete one, or for a moment an instant one of its thread.
fn event(span: &Span, process: usize, thread: usize) -> Value {
    let mut event = json!({
        "ph": "X", "name": span.name, "pid": process, "tid": thread,
        "ts": span.start_us, "dur": span.length_us, "args": { "note": span.note },
    });
    if span.length_us == 0.0 {
        event["ph"] = json!("i");
        event["s"] = json!("t");
    }
    event
}

/// Returns the whole trace.
pub fn trace(picture: &Picture) -> Value {
    let mut events = Vec::new();
    for (process, run) in picture.runs.iter().enumerate() {
        events.push(json!({ "ph": "M", "name": "process_name", "pid": process, "args": { "name": run.name } }));
        for (thread, track) in run.tracks.iter().enumerate() {
            let name = json!({ "name": track.name });
            events.push(json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": name }));
            events.extend(track.spans.iter().map(|span| event(span, process, thread)));
        }
    }
    json!({ "displayTimeUnit": "ms", "otherData": { "title": picture.title }, "traceEvents": events })
}
