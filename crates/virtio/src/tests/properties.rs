// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver that keeps the rules, and a device: whatever they do in whatever order, each chain arrives whole and once,
//! none waits unnoticed, and nothing changes if the device is suspended in between.

use std::collections::{BTreeMap, VecDeque};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{Chain, Queue};

/// A step of the driver or of the device.
#[derive(Clone, Debug)]
enum Step {
    /// The driver adds a chain of so many readable and writable bytes in pieces, in an indirect table or not.
    Add(Vec<u8>, u8, u8, bool),
    /// The device takes a chain.
    Take,
    /// The device completes one of those that it has.
    Complete(prop::sample::Index),
    /// The device publishes what it has completed.
    Publish,
    /// The driver collects what is completed, and then wants an interrupt or not.
    Collect(bool),
    /// The device is suspended, and another one goes on.
    Suspend,
}

fn any_step() -> impl Strategy<Value = Step> {
    let add = (prop::collection::vec(any::<u8>(), 0..40), 1_u8..9, 0_u8..40, any::<bool>());
    prop_oneof![
        4 => add.prop_map(|(bytes, piece, writable, indirect)| Step::Add(bytes, piece, writable, indirect)),
        4 => Just(Step::Take),
        3 => any::<prop::sample::Index>().prop_map(Step::Complete),
        3 => Just(Step::Publish),
        3 => any::<bool>().prop_map(Step::Collect),
        1 => Just(Step::Suspend),
    ]
}

/// The state of both sides, beside the queue.
#[derive(Default)]
struct World {
    /// The contents of each chain, by its head.
    sent: BTreeMap<u16, Vec<u8>>,
    /// Available, in order.
    available: VecDeque<u16>,
    /// Taken by the device.
    taken: Vec<Chain>,
    completed: VecDeque<(u16, u32)>,
    published: VecDeque<(u16, u32)>,
    /// The driver waits for an interrupt at the next published chain.
    is_waiting: bool,
}

/// Where the bytes of a chain are: apart for each head.
fn place(head: u16) -> u64 {
    0x20_0000 + 0x1000 * u64::from(head)
}

fn pieces(address: u64, bytes: usize, piece: u8) -> Vec<Segment> {
    let starts = (0..bytes).step_by(piece.into());
    starts.map(|at| segment(address + at as u64, (bytes - at).min(piece.into()) as u32)).collect()
}

fn add(world: &mut World, ram: &Ram, driver: &mut Driver, step: (&[u8], u8, u8, bool)) {
    let (bytes, piece, writable, is_indirect) = step;
    // The head is not known before there is one: chains take their places in turn.
    let place = place(world.sent.len() as u16 + 64 * (driver.size % 2));
    let free = (0..512).map(|turn| place + 0x1000 * turn).find(|at| {
        world.sent.values().all(|sent| sent.first_chunk::<8>().is_none_or(|own| u64::from_le_bytes(*own) != *at))
    });
    let at = free.expect("there are fewer chains");
    ram.set(at, bytes);
    let readable = pieces(at, bytes.len(), piece);
    let writable = pieces(at + 0x800, writable.into(), piece);
    if let Some(head) = driver.add(ram, &readable, &writable, is_indirect && driver.options.has_indirect) {
        let mut sent = at.to_le_bytes().to_vec();
        sent.extend(bytes);
        world.sent.insert(head, sent);
        world.available.push_back(head);
    }
}

fn run(size: u16, options: Options, steps: &[Step]) -> Result<(), TestCaseError> {
    let (ram, mut driver, mut queue) = lab(size, options);
    let mut world = World { is_waiting: true, ..World::default() };
    driver.want_interrupt(&ram, true);
    prop_assert_eq!(queue.enable_notifications(&ram), Ok(false));
    // The device has been notified, and is to take all there is.
    let mut is_notified = false;
    for step in steps {
        match step {
            Step::Add(bytes, piece, writable, indirect) => {
                add(&mut world, &ram, &mut driver, (bytes, *piece, *writable, *indirect));
                is_notified |= driver.notifies(&ram);
            }
            Step::Take => {
                let mut chain = Chain::new();
                let is_taken = queue.take(&ram, &mut chain);
                prop_assert_eq!(is_taken, Ok(!world.available.is_empty()));
                if let Some(head) = world.available.pop_front() {
                    prop_assert_eq!(chain.head(), head);
                    let mut bytes = vec![0; chain.readable_bytes() as usize];
                    prop_assert_eq!(chain.read(&ram, 0, &mut bytes), Ok(bytes.len()));
                    prop_assert_eq!(&bytes, &world.sent[&head][8..]);
                    world.taken.push(chain);
                } else {
                    is_notified = queue.enable_notifications(&ram).expect("good");
                    prop_assert!(!is_notified);
                }
            }
            Step::Complete(index) if !world.taken.is_empty() => {
                let chain = world.taken.swap_remove(index.index(world.taken.len()));
                let written = chain.write(&ram, 0, &[7; 16]).expect("it is memory") as u32;
                prop_assert_eq!(written, chain.writable_bytes().min(16));
                queue.complete(&ram, chain.head(), written).expect("good");
                world.completed.push_back((chain.head(), written));
            }
            Step::Complete(_) => {}
            Step::Publish => {
                let is_wanted = queue.publish(&ram).expect("good");
                let has_news = !world.completed.is_empty();
                world.published.append(&mut world.completed);
                prop_assert!(is_wanted <= has_news);
                prop_assert!(!(world.is_waiting && has_news) || is_wanted, "the driver waits");
                world.is_waiting &= !is_wanted;
            }
            Step::Collect(waits) => {
                while let Some(found) = driver.collect(&ram) {
                    prop_assert_eq!(Some(found), world.published.pop_front());
                    world.sent.remove(&found.0);
                }
                prop_assert!(world.published.is_empty());
                driver.want_interrupt(&ram, *waits);
                world.is_waiting = *waits;
            }
            Step::Suspend => {
                let is_wanted = queue.publish(&ram).expect("good");
                world.published.append(&mut world.completed);
                world.is_waiting &= !is_wanted;
                let next = Queue::resume(queue.addresses(), queue.size(), options, queue.progress());
                prop_assert_eq!(next, Ok(queue));
            }
        }
        prop_assert!(is_notified || world.available.is_empty(), "a chain waits, and the device is not notified");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_chain_arrives_whole_and_once_and_none_waits_unnoticed(
        size in (0_u32..6).prop_map(|log2| 1_u16 << log2),
        has_indirect: bool,
        has_event_index: bool,
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        run(size, Options { has_indirect, has_event_index }, &steps)?;
    }
}
