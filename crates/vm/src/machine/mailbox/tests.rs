// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of what switches a processor off and on.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const ROUNDS: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);

fn message(mode: DeliveryMode, vector: u8) -> InterruptMessage {
    InterruptMessage { destination: Destination::Itself, mode, vector, is_level: false }
}

fn lapic() -> Lapic {
    Lapic::new(1, false)
}

fn after(posts: &[DeliveryMode]) -> Mail {
    let mut lapic = lapic();
    let mailbox = Mailbox::new(lapic.addressing());
    for &mode in posts {
        mailbox.post(&message(mode, 0x9f));
    }
    mailbox.take(&mut lapic)
}

#[test]
fn an_init_forgets_what_came_before_it() {
    use DeliveryMode::{Init, Nmi, Startup};
    let init = Mail { init: true, ..Mail::default() };
    assert_eq!(after(&[Nmi, Startup, Nmi, Init]), init);
    assert_eq!(after(&[Nmi, Init, Startup]), Mail { startup: Some(0x9f), ..init });
}

#[test]
fn nmis_keep_their_side_of_a_startup() {
    use DeliveryMode::{Nmi, Startup};
    let startup = Mail { startup: Some(0x9f), ..Mail::default() };
    assert_eq!(after(&[Nmi, Startup]), Mail { early_nmi: true, ..startup });
    assert_eq!(after(&[Startup, Nmi]), Mail { late_nmi: true, ..startup });
    assert_eq!(after(&[Nmi]), Mail { early_nmi: true, ..Mail::default() });
}

/// Whoever sends INIT and then a start-up interrupt starts the processor, whenever that one empties its box.
#[test]
fn a_startup_never_overtakes_its_init() {
    let mut lapic = lapic();
    let mailbox = Mailbox::new(lapic.addressing());
    let (starts, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut runs = true;
            while !is_over.load(Ordering::Acquire) {
                let mail = mailbox.take(&mut lapic);
                runs &= !mail.init;
                if mail.startup.is_some() && !runs {
                    runs = true;
                    starts.fetch_add(1, Ordering::Release);
                }
            }
        });
        let lost = (0..ROUNDS).find(|_| !starts_once(&mailbox, &starts));
        is_over.store(true, Ordering::Release);
        assert_eq!(lost, None, "the first round without a start");
    });
}

fn starts_once(mailbox: &Mailbox, starts: &AtomicU32) -> bool {
    let before = starts.load(Ordering::Acquire);
    mailbox.post(&message(DeliveryMode::Init, 0));
    mailbox.post(&message(DeliveryMode::Startup, 0x9f));
    let end = Instant::now() + PATIENCE;
    while starts.load(Ordering::Acquire) == before {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}
