// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histories of packets between three guests, any of which lies, beside a model: a map for each guest, without order,
//! with credit in 64 bits.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::{Address, Connections, Header, Key, Operation, Phase, Refused};

const GUESTS: u32 = 3;
const FIRST: u32 = 3;

/// An end of a connection as sections 5.10.6.3 and 5.10.6.6 describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    phase: Phase,
    delivered: u64,
    room_until: u64,
}

#[derive(Default)]
struct Model {
    ends: BTreeMap<Key, End>,
}

impl Model {
    fn send(&mut self, header: &Header, may_connect: bool) -> Result<bool, Refused> {
        let key = Key { own_port: header.source.port, peer: header.destination };
        let operation = header.operation.ok_or(Refused)?;
        if operation == Operation::Reset {
            return Ok(self.ends.remove(&key).is_some());
        }
        if !self.ends.contains_key(&key) && operation == Operation::Request && may_connect {
            self.ends.insert(key, End { phase: Phase::Requested, delivered: 0, room_until: 0 });
        }
        let end = self.ends.get_mut(&key).ok_or(Refused)?;
        end.phase = match (end.phase, operation) {
            (Phase::Gone, _) => return Ok(false),
            (Phase::Requested, Operation::Request) => Phase::Requested,
            (Phase::Offered | Phase::Open, Operation::Response) => Phase::Open,
            (phase, Operation::Shutdown | Operation::CreditUpdate | Operation::CreditRequest) => phase,
            (Phase::Open, Operation::Data) => Phase::Open,
            _ => return Err(Refused),
        };
        // Numbers below 2^31 do not wrap in these histories.
        let until = u64::from(header.consumed) + u64::from(header.buffer_bytes);
        end.room_until = end.room_until.max(until);
        Ok(true)
    }

    fn receive(&mut self, header: &Header) -> Result<(), Refused> {
        let key = Key { own_port: header.destination.port, peer: header.source };
        let operation = header.operation.ok_or(Refused)?;
        if operation == Operation::Request && !self.ends.contains_key(&key) {
            self.ends.insert(key, End { phase: Phase::Offered, delivered: 0, room_until: 0 });
            return Ok(());
        }
        let end = self.ends.get_mut(&key).ok_or(Refused)?;
        match (end.phase, operation) {
            (_, Operation::Reset) => end.phase = Phase::Gone,
            (Phase::Requested, Operation::Response) => end.phase = Phase::Open,
            (Phase::Open, Operation::Data) if end.delivered + u64::from(header.bytes) <= end.room_until => {
                end.delivered += u64::from(header.bytes);
            }
            (phase, Operation::Shutdown | Operation::CreditUpdate | Operation::CreditRequest)
                if phase != Phase::Gone => {}
            _ => return Err(Refused),
        }
        Ok(())
    }

    fn reset(&mut self, own_port: u32, peer: Address) {
        if let Some(end) = self.ends.get_mut(&Key { own_port, peer }) {
            end.phase = Phase::Gone;
        }
    }
}

/// A guest's table and its model.
struct Guest {
    table: Connections,
    model: Model,
}

impl Guest {
    fn check(&self) -> Result<(), TestCaseError> {
        let found: Vec<_> =
            self.table.all().iter().map(|end| (end.key, end.phase, end.delivered, end.room())).collect();
        let expected = self
            .model
            .ends
            .iter()
            .map(|(key, end)| (*key, end.phase, end.delivered as u32, (end.room_until - end.delivered) as u32));
        prop_assert_eq!(found, expected.collect::<Vec<_>>());
        Ok(())
    }
}

/// A packet as the host takes it from one guest to another.
fn pass(guests: &mut [Guest], header: &Header, may_connect: bool) -> Result<(), TestCaseError> {
    let from = (header.source.cid - FIRST) as usize;
    let sent = guests[from].table.send(header, may_connect);
    prop_assert_eq!(sent, guests[from].model.send(header, may_connect));
    let to = (header.destination.cid - FIRST) as usize;
    let (own_port, peer) = (header.destination.port, header.source);
    let is_refused = match sent {
        Ok(false) => false,
        Err(Refused) => true,
        Ok(true) => {
            let received = guests[to].table.receive(header, header.bytes);
            prop_assert_eq!(received, guests[to].model.receive(header));
            match (received, header.operation) {
                (Ok(()), Some(Operation::Reset)) => guests[to].table.reset(own_port, peer),
                (Ok(()), _) => guests[to].table.note_received(header, header.bytes),
                (Err(Refused), _) => {}
            }
            received.is_err()
        }
    };
    if is_refused {
        guests[from].table.discard(header.source.port, header.destination);
        guests[from].model.ends.remove(&Key { own_port: header.source.port, peer: header.destination });
        guests[to].table.reset(own_port, peer);
        guests[to].model.reset(own_port, peer);
    }
    Ok(())
}

fn some_operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop::sample::select(vec![
        Request,
        Request,
        Response,
        Response,
        Data,
        Data,
        Data,
        CreditUpdate,
        CreditRequest,
        Shutdown,
        Reset,
    ])
}

proptest! {
    #[test]
    fn s5_10_6_tables_go_where_the_model_goes(
        packets in prop::collection::vec(
            ((0..GUESTS, 1..GUESTS), (0u32..2, 0u32..2), some_operation(), (0u32..500, 0u32..1000, 0u32..100)),
            1..120,
        ),
        flushes: bool,
    ) {
        let guest = |number| Guest { table: Connections::new(FIRST + number), model: Model::default() };
        let mut guests: Vec<Guest> = (0..GUESTS).map(guest).collect();
        for ((from, further), (source, destination), operation, (bytes, buffer_bytes, consumed)) in packets {
            let to = (from + further) % GUESTS;
            // No guest states that it has consumed more than it got: that changes nothing, and the model has no place
            // for it.
            let source = Address { cid: FIRST + from, port: source };
            let destination = Address { cid: FIRST + to, port: destination };
            let key = Key { own_port: source.port, peer: destination };
            let delivered = guests[from as usize].model.ends.get(&key).map_or(0, |end| end.delivered as u32);
            let consumed = consumed.min(delivered);
            // The device passes no data of other packets on.
            let bytes = if operation == Operation::Data { bytes } else { 0 };
            let (operation, flags) = (Some(operation), 0);
            let header = Header { source, destination, bytes, operation, flags, buffer_bytes, consumed };
            pass(&mut guests, &header, to != 0)?;
            if flushes {
                for guest in &mut guests {
                    while let Some(reset) = guest.table.next_reset() {
                        guest.table.take_reset(&reset);
                    }
                    guest.model.ends.retain(|_, end| end.phase != Phase::Gone);
                }
            }
            for guest in &guests {
                guest.check()?;
                let mut next = Connections::new(guest.table.cid());
                prop_assert!(next.restore(guest.table.all().iter().copied()).is_ok());
                prop_assert_eq!(&next, &guest.table);
            }
        }
    }
}
