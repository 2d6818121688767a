// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of the driver (section 5.1.6.5): how many pairs of queues it uses.

use ::virtio::{Chain, Fault};

use super::feature;
use super::pairs::Pairs;
use crate::devices::virtio::Io;

/// Class and command, and the number of pairs behind them (5.1.6.5.5).
const COMMAND_BYTES: usize = 4;
const CLASS_MQ: u8 = 4;
const VQ_PAIRS_SET: u8 = 0;
/// Answers.
const OK: u8 = 0;
const ERR: u8 = 1;
/// More commands than a driver has time to give in one notification: the queue has 64 descriptors.
const COMMANDS: usize = 256;

/// Obeys the commands in a queue.
///
/// # Errors
/// The driver's [`Fault`].
pub(super) fn obey(pairs: &mut Pairs, queue: u16, chain: &mut Chain, io: &mut Io<'_>) -> Result<(), Fault> {
    for _ in 0..COMMANDS {
        if io.take(queue, chain)? {
            let answer = command(pairs, chain, io)?;
            if chain.write(io.memory, 0, &[answer])? == 0 {
                return Err(Fault::Request("a command without room for the answer"));
            }
            io.complete(queue, chain.head(), 1)?;
        } else if !io.enable_notifications(queue)? {
            return io.publish(queue);
        }
    }
    Err(Fault::Request("commands without an end"))
}

fn command(pairs: &mut Pairs, chain: &Chain, io: &Io<'_>) -> Result<u8, Fault> {
    let mut bytes = [0; COMMAND_BYTES];
    let is_whole = chain.read(io.memory, 0, &mut bytes)? == COMMAND_BYTES;
    let [class, command, low, high] = bytes;
    let is_known = is_whole && (class, command) == (CLASS_MQ, VQ_PAIRS_SET) && io.features() & feature::MQ != 0;
    Ok(if is_known && pairs.set_used(u16::from_le_bytes([low, high])) { OK } else { ERR })
}
