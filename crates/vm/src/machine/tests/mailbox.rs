// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of messages that stop and start a vCPU. Races with its senders are in `interleavings`.

use super::super::mailbox::PendingEvents;
use super::*;
use crate::devices::{DeliveryMode, Destination, InterruptMessage};

fn message(mode: DeliveryMode, vector: u8) -> InterruptMessage {
    InterruptMessage { destination: Destination::Itself, mode, vector, is_level: false }
}

fn lapic() -> Lapic {
    Lapic::new(1, false)
}

fn after(posts: &[DeliveryMode]) -> PendingEvents {
    let mut lapic = lapic();
    let mailbox = Mailbox::new(lapic.addressing());
    for &mode in posts {
        mailbox.post(&message(mode, 0x9f));
    }
    mailbox.take(&mut lapic)
}

#[test]
fn an_init_clears_what_came_before_it() {
    use DeliveryMode::{Init, Nmi, Startup};
    let init = PendingEvents { init: true, ..PendingEvents::default() };
    assert_eq!(after(&[Nmi, Startup, Nmi, Init]), init);
    assert_eq!(after(&[Nmi, Init, Startup]), PendingEvents { startup: Some(0x9f), ..init });
}

#[test]
fn nmis_keep_their_side_of_a_startup() {
    use DeliveryMode::{Nmi, Startup};
    let startup = PendingEvents { startup: Some(0x9f), ..PendingEvents::default() };
    assert_eq!(after(&[Nmi, Startup]), PendingEvents { early_nmis: 1, ..startup });
    assert_eq!(after(&[Startup, Nmi]), PendingEvents { late_nmis: 1, ..startup });
    assert_eq!(after(&[Nmi]), PendingEvents { early_nmis: 1, ..PendingEvents::default() });
}

#[test]
fn two_nmis_are_two_and_more_are_no_more() {
    use DeliveryMode::{Nmi, Startup};
    assert_eq!(after(&[Nmi, Nmi]), PendingEvents { early_nmis: 2, ..PendingEvents::default() });
    assert_eq!(after(&[Nmi, Nmi, Nmi]), PendingEvents { early_nmis: 2, ..PendingEvents::default() });
    let both = PendingEvents { early_nmis: 2, startup: Some(0x9f), late_nmis: 2, ..PendingEvents::default() };
    assert_eq!(after(&[Nmi, Nmi, Startup, Nmi, Nmi]), both);
}
