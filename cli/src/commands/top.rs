// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton top`: the use of a host's CPUs, and its guests, live.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, poll, read as read_event};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::flag;

use super::{DONE, connect};
use crate::args::{Target, TopArgs};
use crate::client::Client;
use crate::output::output;
use crate::top::{Flow, Reading, Screen, between, read, tables};

/// The host samples after a request: the next reading has the samples of the one before.
const FIRST_SAMPLES: Duration = Duration::from_millis(200);
/// The interval at which signals are checked.
const TICK: Duration = Duration::from_millis(200);

/// Shows the host until the person leaves.
pub(super) fn run(target: &Target, args: &TopArgs) -> Result<u8> {
    let is_screen = !args.once && !args.format.json;
    if is_screen && !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        bail!("standard input or output is no terminal; --once prints one table, --json an object for each interval");
    }
    let mut client = connect(target)?;
    // The first readings have the host sample: with the third one there are two samples.
    read(&mut client)?;
    thread::sleep(FIRST_SAMPLES);
    let before = read(&mut client)?;
    match is_screen {
        true => on_screen(&mut client, before, args),
        false => printed(&mut client, before, args),
    }
}

/// Prints one interval, or objects until the reader has gone.
fn printed(client: &mut Client, mut before: Reading, args: &TopArgs) -> Result<u8> {
    loop {
        thread::sleep(args.interval);
        let now = read(client)?;
        let mut view = between(&before, &now);
        view.sort(args.sort);
        match args.format.json {
            true => writeln!(output(), "{}", serde_json::to_string(&view)?)?,
            false => write!(output(), "{}", tables(&view))?,
        }
        output().flush()?;
        if args.once {
            return Ok(DONE);
        }
        before = now;
    }
}

fn on_screen(client: &mut Client, before: Reading, args: &TopArgs) -> Result<u8> {
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGTERM, SIGHUP] {
        flag::register(number, signal.clone())?;
    }
    client.handles_signals();
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let result = live(client, &mut terminal, before, args, &signal);
    // In any case: an error is to be read on a terminal in its own mode.
    ratatui::restore();
    result.map(|()| DONE)
}

fn live(
    client: &mut Client,
    terminal: &mut DefaultTerminal,
    mut before: Reading,
    args: &TopArgs,
    signal: &AtomicBool,
) -> Result<()> {
    let mut screen = Screen::new(between(&before, &before), args.sort);
    let (mut due, mut is_drawn) = (Instant::now() + args.interval, false);
    while !signal.load(Ordering::Relaxed) {
        if !std::mem::replace(&mut is_drawn, true) {
            terminal.draw(|frame| screen.draw(frame))?;
        }
        let left = due.saturating_duration_since(Instant::now());
        if poll(left.min(TICK))? {
            // Anything but a key, e.g. a change of the size, has the picture drawn again.
            is_drawn = false;
            if let Event::Key(key) = read_event()?
                && screen.press(key) == Flow::Quit
            {
                return Ok(());
            }
        }
        if Instant::now() >= due {
            let now = read(client)?;
            screen.show(between(&before, &now));
            (before, is_drawn) = (now, false);
            due = Instant::now() + args.interval;
        }
    }
    Ok(())
}
