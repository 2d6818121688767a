// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic from one guest to another.

/// Mean round trips of an echo are reported every second: so many are left out, and so many are taken.
pub(in crate::net) const ECHOES: (usize, usize) = (3, 5);

/// Traffic from `sender` to `sink`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Traffic {
    /// Datagrams in frames of 64 bytes, as many as the sender can send.
    Packets,
    /// One TCP connection, likewise.
    Bulk,
    /// Blocks of 4 KiB over TCP, each of which comes back before the next one goes.
    Echo,
}

impl Traffic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bulk => "bulk",
            Self::Echo => "echo",
        }
    }

    /// The tasks of the agents of sink and sender.
    pub fn tasks(self) -> [String; 2] {
        let sink = if self == Self::Echo { "serve" } else { "sink" };
        [format!("{sink}:10.9.0.1:9,wait"), format!("{}:10.9.0.2:10.9.0.1:9,wait", self.name())]
    }

    /// The words of both once it is there.
    pub fn signs(self) -> [&'static str; 2] {
        match self {
            Self::Packets | Self::Bulk => ["sink: ", "flood: "],
            Self::Echo => ["serve: ", "echo 1 "],
        }
    }
}

/// Returns the mean round trip in a line of the sender's, in microseconds: `echo NUMBER … mean_us=…`.
pub(in crate::net) fn round_trip(line: &str) -> Option<f64> {
    let words = line.trim().strip_prefix("echo ")?;
    words.split_whitespace().find_map(|word| word.strip_prefix("mean_us=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_in_the_report_of_an_echo() {
        assert_eq!(round_trip("echo 3 verified=400 slowest_us=9000 mean_us=412\r"), Some(412.0));
        assert_eq!(round_trip("echo: WRONG: 10.9.0.1:9: reset mean_us=1"), None);
        assert_eq!(round_trip("echo 3 verified=400 slowest_us=9000"), None);
    }
}
