// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's network card: the datagrams that arrive outside the machine, one each millisecond.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::datagrams::{Arrivals, Receiver};

/// The receiver in the agent's task `stream` of the demo's `host.toml`: QEMU's user network passes on to this machine
/// what is sent to its gateway. The demo listens at a free port and writes it in place of 0.
const ANY_PORT: &str = ":10.0.2.2:0";

/// The other end of a guest's stream.
#[derive(Debug)]
pub(super) struct Card {
    receiver: Receiver,
    /// The last time at which the guest certainly sent.
    seen: Duration,
}

impl Card {
    /// Listens, and completes the guest's command line, if that has the agent send datagrams to here.
    ///
    /// # Errors
    /// There is no free port.
    pub(super) fn listen(cmdline: &mut String) -> Result<Option<Self>> {
        if !cmdline.contains(ANY_PORT) {
            return Ok(None);
        }
        let (receiver, port) = Receiver::of_user_network()?;
        *cmdline = cmdline.replacen(ANY_PORT, &format!("{}{port}", ANY_PORT.trim_end_matches('0')), 1);
        Ok(Some(Self { receiver, seen: Duration::ZERO }))
    }

    /// Returns whether datagrams arrive.
    pub(super) fn is_in_use(&self) -> bool {
        self.receiver.arrivals().count() > 0
    }

    /// Notes that the guest sends at this time, and returns it.
    pub(super) fn see(&mut self) -> Duration {
        self.seen = self.receiver.now();
        self.seen
    }

    /// Describes all arrivals, and the longest silence after `start`.
    pub(super) fn since(&self, start: Duration) -> Result<String> {
        describe(&self.receiver.arrivals(), start, self.seen)
    }
}

fn describe(arrivals: &Arrivals, start: Duration, end: Duration) -> Result<String> {
    let (count, lost, repeated) = (arrivals.count(), arrivals.lost(), arrivals.repeated());
    ensure!(arrivals.count_in(start..end) > 0, "no datagram came from the guest's card after the update began");
    ensure!(lost.is_empty(), "datagrams {lost:?} from the guest's card never came");
    ensure!(repeated == 0, "{repeated} datagrams from the guest's card came twice");
    let silence = arrivals.longest_silence(start..end).as_secs_f64() * 1e3;
    Ok(format!(
        "{count} datagrams came from its network card, one each millisecond, none lost; the longest silence since the \
         update began was {silence:.1} ms."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(numbers: impl IntoIterator<Item = u64>) -> Arrivals {
        let mut arrivals = Arrivals::default();
        numbers.into_iter().for_each(|number| arrivals.add(Duration::from_millis(number), number));
        arrivals
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_longest_silence_after_the_update_began_is_reported() {
        let mut arrivals = arrivals(0..=10);
        arrivals.add(25 * MS, 11);
        arrivals.add(26 * MS, 12);
        assert_eq!(
            describe(&arrivals, 5 * MS, 30 * MS).expect("all came"),
            "13 datagrams came from its network card, one each millisecond, none lost; the longest silence since the \
             update began was 15.0 ms."
        );
    }

    #[test]
    fn datagrams_that_are_lost_come_twice_or_end_are_errors() {
        let because = |numbers: &[u64], start| {
            describe(&arrivals(numbers.iter().copied()), start, 50 * MS).expect_err("not well").to_string()
        };
        assert_eq!(because(&[1, 2, 5], MS), "datagrams [3..5] from the guest's card never came");
        assert_eq!(because(&[1, 2, 2, 3], MS), "1 datagrams from the guest's card came twice");
        assert!(because(&[1, 2], 3 * MS).contains("after the update began"));
    }

    #[test]
    fn the_guest_is_given_the_port_at_which_the_demo_listens() {
        let mut cmdline = "agent=drivers,stream:10.0.2.15:10.0.2.2:0,heartbeat:200:30".to_owned();
        let card = Card::listen(&mut cmdline).expect("a port").expect("it is asked for");
        assert!(!cmdline.contains(ANY_PORT) && cmdline.ends_with(",heartbeat:200:30"), "{cmdline}");
        assert!(!card.is_in_use());
        let mut without = "agent=heartbeat:200:30".to_owned();
        assert!(Card::listen(&mut without).expect("nothing to do").is_none());
    }
}
