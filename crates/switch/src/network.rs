// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network: its ports, and where frames go between them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::counters::Reason;
use crate::header::{Header, Tag};
use crate::learned::Learned;
use crate::mac::Mac;
use crate::port::{MAX_VLAN, Port, Vlans};
use crate::ports::{MAX_PORTS, Ports};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The ports; at least one.
    pub ports: Ports,
    /// Its VLAN.
    pub vlan: u16,
    /// The tag that it came with.
    tag: Option<Tag>,
}

/// A frame as it leaves by one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The port.
    pub port: usize,
    /// The tag that it has there.
    pub tag: Option<Tag>,
}

/// Why there can be no such network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has more than [`MAX_PORTS`] ports.
    TooManyPorts,
    /// This port's address is no station's.
    NoStation(usize),
    /// This port's address is another's, too.
    SameAddress(usize),
    /// This port has no VLAN, or one above [`MAX_VLAN`].
    BadVlan(usize),
}

/// A network. Any CPU forwards with it at any time.
#[derive(Debug)]
pub struct Network {
    /// By number; `None` where there is none.
    ports: Vec<Option<Port>>,
    mtu: usize,
    /// By address.
    fixed: Vec<(Mac, usize)>,
    /// By VLAN.
    members: Vec<(u16, Ports)>,
    isolated: Ports,
    /// The trusted ports, with the stations that each has sent from.
    learned: Vec<(usize, Arc<Learned>)>,
}

impl Network {
    /// A network without ports, whose packets have at most `mtu` bytes behind the header, segmentation offload apart.
    pub const fn empty(mtu: usize) -> Self {
        Self {
            ports: Vec::new(),
            mtu,
            fixed: Vec::new(),
            members: Vec::new(),
            isolated: Ports::NONE,
            learned: Vec::new(),
        }
    }

    /// A network of these ports, by number. Numbers may be left out.
    ///
    /// # Errors
    /// There can be no such network.
    pub fn new(mtu: usize, ports: Vec<Option<Port>>) -> Result<Self, Refused> {
        if ports.len() > MAX_PORTS {
            return Err(Refused::TooManyPorts);
        }
        let mut network = Self { ports, ..Self::empty(mtu) };
        for (number, port) in network.ports.iter().enumerate() {
            let Some(port) = port else { continue };
            if !port.mac.is_station() {
                return Err(Refused::NoStation(number));
            }
            match network.fixed.binary_search_by_key(&port.mac, |(mac, _)| *mac) {
                Ok(_) => return Err(Refused::SameAddress(number)),
                Err(at) => network.fixed.insert(at, (port.mac, number)),
            }
            let vlans = port.vlans.all();
            if vlans.is_empty() || vlans.iter().any(|vlan| *vlan > MAX_VLAN) {
                return Err(Refused::BadVlan(number));
            }
            vlans.iter().for_each(|vlan| add_member(&mut network.members, *vlan, number));
            if port.is_isolated {
                network.isolated = network.isolated.or(Ports::only(number));
            }
            if port.is_trusted {
                network.learned.push((number, Arc::default()));
            }
        }
        Ok(network)
    }

    /// The network with a port more, of this number. It shares the known stations with this one.
    ///
    /// # Errors
    /// There can be no such network.
    pub fn with_port(&self, number: usize, port: Port) -> Result<Self, Refused> {
        let mut ports = self.ports.clone();
        ports.resize(ports.len().max(number + 1), None);
        ports[number] = Some(port);
        self.changed(ports)
    }

    /// The network without the port of this number. It shares the known stations with this one.
    #[must_use]
    pub fn without_port(&self, number: usize) -> Option<Self> {
        let mut ports = self.ports.clone();
        *ports.get_mut(number)? = None;
        self.changed(ports).ok()
    }

    fn changed(&self, ports: Vec<Option<Port>>) -> Result<Self, Refused> {
        let mut changed = Self::new(self.mtu, ports)?;
        for (number, learned) in &mut changed.learned {
            let is_same = self.port(*number) == changed.ports[*number].as_ref();
            if let Some((_, known)) = self.learned.iter().find(|(other, _)| is_same && other == number) {
                *learned = known.clone();
            }
        }
        Ok(changed)
    }

    /// The ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (usize, &Port)> {
        self.ports.iter().enumerate().filter_map(|(number, port)| Some((number, port.as_ref()?)))
    }

    /// The port of a number.
    pub fn port(&self, number: usize) -> Option<&Port> {
        self.ports.get(number)?.as_ref()
    }

    /// The lowest number that no port has; `None`: there are [`MAX_PORTS`].
    pub fn free_number(&self) -> Option<usize> {
        let free = self.ports.iter().position(Option::is_none).unwrap_or(self.ports.len());
        (free < MAX_PORTS).then_some(free)
    }

    /// The most bytes behind the header of a frame that is not to be segmented.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Returns the number of stations that are known at a port beside its own.
    pub fn stations(&self, port: usize, now_ns: u64) -> usize {
        self.learned_at(port).map_or(0, |learned| learned.count(now_ns))
    }

    /// Decides where a frame goes that a port sends, and learns its source. `is_segmented` is true if it is to be cut
    /// into frames of the network's size (segmentation offload).
    ///
    /// # Errors
    /// Nowhere: why.
    pub fn forward(&self, from: usize, header: &Header, is_segmented: bool, now_ns: u64) -> Result<Forward, Reason> {
        let port = self.port(from).ok_or(Reason::Unreachable)?;
        if header.payload_bytes > self.mtu && !is_segmented {
            return Err(Reason::Long);
        }
        let vlan = ingress_vlan(&port.vlans, header.tag).ok_or(Reason::Vlan)?;
        self.check_source(from, port, header.source)?;
        if header.destination.is_reserved() {
            return Err(Reason::Reserved);
        }
        if let Some(learned) = self.learned_at(from).filter(|_| header.source != port.mac) {
            learned.note(header.source, vlan, now_ns);
        }
        let reachable = self.reachable(from, vlan);
        let ports = match self.station(header.destination, vlan, now_ns) {
            Some(to) => reachable.and(Ports::only(to)),
            None => reachable,
        };
        if ports.is_empty() {
            return Err(Reason::Unreachable);
        }
        Ok(Forward { ports, vlan, tag: header.tag })
    }

    /// The frame as it leaves by each of its ports.
    pub fn egress(&self, forward: Forward) -> impl Iterator<Item = Egress> {
        forward.ports.map(move |port| Egress { port, tag: self.egress_tag(port, forward) })
    }

    fn egress_tag(&self, port: usize, forward: Forward) -> Option<Tag> {
        let is_trunk = self.port(port).is_some_and(|port| port.vlans.are_tagged());
        let tag = forward.tag.map_or_else(|| Tag::of(forward.vlan), |tag| tag.with_vlan(forward.vlan));
        (is_trunk && forward.vlan != 0).then_some(tag)
    }

    /// A port sends from its own address; a trusted one from any station's that is not fixed elsewhere.
    fn check_source(&self, from: usize, port: &Port, source: Mac) -> Result<(), Reason> {
        let is_possible = || source.is_station() && self.fixed(source).is_none_or(|owner| owner == from);
        match source == port.mac || port.is_trusted && is_possible() {
            true => Ok(()),
            false => Err(Reason::Source),
        }
    }

    fn fixed(&self, mac: Mac) -> Option<usize> {
        let found = self.fixed.binary_search_by_key(&mac, |(mac, _)| *mac).ok()?;
        Some(self.fixed[found].1)
    }

    /// The port of a station that is known in a VLAN.
    fn station(&self, mac: Mac, vlan: u16, now_ns: u64) -> Option<usize> {
        if mac.is_group() {
            return None;
        }
        match self.fixed(mac) {
            // The same address may be another station's in a VLAN that the port has no part in.
            Some(port) if self.members(vlan).has(port) => Some(port),
            _ => {
                let seen = |(port, learned): &(usize, Arc<Learned>)| Some((learned.find(mac, vlan, now_ns)?, *port));
                self.learned.iter().filter_map(seen).max().map(|(_, port)| port)
            }
        }
    }

    fn learned_at(&self, port: usize) -> Option<&Learned> {
        let at = self.learned.binary_search_by_key(&port, |(port, _)| *port).ok()?;
        Some(&self.learned[at].1)
    }

    /// The ports that a port reaches in a VLAN.
    fn reachable(&self, from: usize, vlan: u16) -> Ports {
        let barred = if self.isolated.has(from) { self.isolated } else { Ports::NONE };
        self.members(vlan).without(Ports::only(from)).without(barred)
    }

    fn members(&self, vlan: u16) -> Ports {
        let found = self.members.binary_search_by_key(&vlan, |(vlan, _)| *vlan);
        found.map_or(Ports::NONE, |at| self.members[at].1)
    }
}

fn add_member(members: &mut Vec<(u16, Ports)>, vlan: u16, port: usize) {
    let at = members.binary_search_by_key(&vlan, |(vlan, _)| *vlan).unwrap_or_else(|at| {
        members.insert(at, (vlan, Ports::NONE));
        at
    });
    members[at].1 = members[at].1.or(Ports::only(port));
}

/// The VLAN of a frame that comes by a port; `None` if it has no part in it.
fn ingress_vlan(vlans: &Vlans, tag: Option<Tag>) -> Option<u16> {
    // A tag without VLAN states a priority only.
    let tagged = tag.map_or(0, Tag::vlan);
    match vlans {
        Vlans::Access(vlan) => (tagged == 0).then_some(*vlan),
        Vlans::Trunk(list) => list.contains(&tagged).then_some(tagged),
    }
}
