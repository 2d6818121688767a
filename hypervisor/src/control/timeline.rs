// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of the timeline.

use alloc::vec::Vec;

use wire::{ReplyBody, TimelinePage, TimelinePlace, TimelinePoint, page};

use crate::arch::{cpu_local, timer};
use crate::kernel::timeline::ring;

/// The most records of a page: as many as a frame may hold.
const PAGE_POINTS: usize = 400;

/// The page that begins at this place, or with the next CPU that has a ring.
pub fn page(from: TimelinePlace) -> ReplyBody {
    let cpus = from.cpu..cpu_local::count();
    let (cpu, ring) = cpus.into_iter().find_map(|index| Some((index, ring(index)?))).unzip();
    let (Some(cpu), Some(ring)) = (cpu, ring) else { return reply(from.cpu, Vec::new(), 0, None) };
    let wanted = if cpu == from.cpu { from.number } else { 0 };
    // Records from here on are for a client that asks later.
    let (first, end) = (wanted.max(ring.oldest()), ring.written());
    let found: Vec<(u64, TimelinePoint)> = (first..end)
        .filter_map(|number| ring.get(number).map(|point| (number, point)))
        .take(PAGE_POINTS)
        .map(|(number, point)| {
            let timeline::Point { ticks, name, kind, argument } = point;
            (number, TimelinePoint { ticks, name, kind: kind as u8, argument })
        })
        .collect();
    let points = page::fill(found.iter().map(|(_, point)| *point), PAGE_POINTS);
    let reached =
        found.get(points.len()).map_or(if found.len() < PAGE_POINTS { end } else { after(&found) }, |left| left.0);
    let lost = reached.saturating_sub(wanted).saturating_sub(points.len() as u64);
    let next = if reached < end { (cpu, reached) } else { (cpu + 1, 0) };
    reply(cpu, points, lost, Some(next))
}

fn after(found: &[(u64, TimelinePoint)]) -> u64 {
    found.last().map_or(0, |(number, _)| number + 1)
}

fn reply(cpu: u32, points: Vec<TimelinePoint>, lost: u64, next: Option<(u32, u64)>) -> ReplyBody {
    let next = next.filter(|next| next.0 < cpu_local::count());
    let next = next.map(|(cpu, number)| TimelinePlace { cpu, number });
    ReplyBody::Timeline(TimelinePage { cpu, ticks_per_second: timer::tsc_hz(), points, lost, next })
}
