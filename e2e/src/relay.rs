// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's control line that several tools share one after the other. A tool starts an emulator of its own and owns
//! that one's line, but a host that was updated to another release is operated by that release's tool. So the test
//! starts the machine, and each tool is given this program as its emulator: it passes bytes between the tool and the
//! machine's line.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The variable with the path of the relay's socket; it makes the test program an emulator that is none.
pub const RELAY: &str = "BATON_E2E_RELAY";

/// An argument that every emulator is given.
const EMULATORS_ARGUMENT: &str = "-nodefaults";

/// Plays the emulator, if that is wanted: passes bytes until one side ends.
pub fn play() -> Option<ExitCode> {
    let relay = env::var_os(RELAY)?;
    let arguments: Vec<OsString> = env::args_os().collect();
    arguments.iter().any(|argument| argument == EMULATORS_ARGUMENT).then(|| match pass(&relay, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay: {error}");
            ExitCode::FAILURE
        }
    })
}

fn pass(relay: &OsStr, arguments: &[OsString]) -> io::Result<()> {
    let path = |prefix| arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix(prefix));
    let tool = UnixStream::connect(path("socket,id=control,path=").ok_or(io::ErrorKind::InvalidInput)?)?;
    // The tool of 0.1.0 has no monitor. Nothing is reported on that of ours.
    let _monitor = path("socket,id=shutdown,path=").map(UnixStream::connect).transpose()?;
    let host = UnixStream::connect(relay)?;
    let (from_tool, to_host) = (tool.try_clone()?, host.try_clone()?);
    let back = thread::spawn(move || pump(from_tool, to_host));
    pump(host, tool);
    let _ = back.join();
    Ok(())
}

/// Passes bytes one way; at the end of either side both end.
fn pump(mut from: UnixStream, mut to: UnixStream) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Lets tools connect to the machine's `line` at the socket `path`, one at a time; what the machine sends while none
/// is connected is lost. Ends with the line.
///
/// # Errors
/// The socket cannot be made.
pub fn serve(line: UnixStream, path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let tool: Arc<Mutex<Option<UnixStream>>> = Arc::default();
    let (mut from_machine, current) = (line.try_clone()?, tool.clone());
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from_machine.read(&mut bytes) {
            let mut tool = current.lock().unwrap_or_else(PoisonError::into_inner);
            if tool.as_mut().is_some_and(|tool| tool.write_all(&bytes[..count]).is_err()) {
                *tool = None;
            }
        }
        if let Some(tool) = current.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = tool.shutdown(Shutdown::Both);
        }
    });
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            *tool.lock().unwrap_or_else(PoisonError::into_inner) = connection.try_clone().ok();
            let (mut bytes, mut machine) = ([0; 4096], &line);
            while let Ok(count @ 1..) = connection.read(&mut bytes) {
                if machine.write_all(&bytes[..count]).is_err() {
                    return;
                }
            }
            *tool.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    });
    Ok(())
}
