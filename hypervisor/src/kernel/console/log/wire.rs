// SPDX-License-Identifier: MIT OR Apache-2.0
//! Log records as messages of the control protocol.

use alloc::borrow::Cow;

use wire::LogRecord;

/// A log record as it travels.
pub fn to_wire<'a>(record: &klog::Record<'a>) -> LogRecord<'a> {
    LogRecord {
        sequence: record.sequence,
        time_ns: record.time_ns,
        cpu: record.cpu,
        level: match record.level {
            klog::Level::Error => wire::Level::Error,
            klog::Level::Warn => wire::Level::Warn,
            klog::Level::Info => wire::Level::Info,
            klog::Level::Debug => wire::Level::Debug,
            klog::Level::Trace => wire::Level::Trace,
        },
        module: Cow::Borrowed(record.module),
        text: Cow::Borrowed(record.text),
    }
}
