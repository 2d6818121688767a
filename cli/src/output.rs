// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, and the detection of a reader that has gone.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Stdout, Write};

/// The reader of standard output has gone (`baton log | head`): the inner error of the [`io::Error`]s of [`Output`].
#[derive(Debug)]
pub struct ReaderHasGone;

impl fmt::Display for ReaderHasGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of the output is gone")
    }
}

impl Error for ReaderHasGone {}

/// Standard output. An error states whether its reader has gone, so that it is not taken for another closed connection.
#[derive(Debug)]
pub struct Output(Stdout);

/// Standard output.
pub fn output() -> Output {
    Output(io::stdout())
}

/// Returns whether a command ended because the reader of standard output has gone.
pub fn has_lost_its_reader(error: &anyhow::Error) -> bool {
    let inner = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>()?.get_ref().map(|inner| inner.is::<ReaderHasGone>())
    };
    error.chain().any(|cause| inner(cause) == Some(true))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(explained)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(explained)
    }
}

fn explained(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::BrokenPipe { io::Error::new(error.kind(), ReaderHasGone) } else { error }
}
