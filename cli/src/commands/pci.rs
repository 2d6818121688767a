// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton pci`: the PCI functions of a running host, the cost of their discovery, the IOMMUs that isolate them, and the
//! guests that they are assigned to.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use comfy_table::{CellAlignment, Table, presets};
use wire::{
    IommuUnit, PciCost, PciFunction, PciProgress, PciRange, PciSurvey, PciVirtualFunctions, ReplyBody, RequestBody,
};

use super::{DONE, connect};
use crate::args::{Format, PciAssign, PciCommand, PciRelease, ResetPolicy, Target};
use crate::client::Client;

/// Address of a function: segment, bus, device, function.
type Place = (u16, u8, u8, u8);

/// The time between two checks of whether a guest still has a function.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The columns with numbers.
const NUMBERS: [usize; 3] = [3, 5, 6];

pub(super) fn run(target: &Target, command: &PciCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        PciCommand::List(format) => list(&mut client, *format),
        PciCommand::Assign(order) => assign(&mut client, order),
        PciCommand::Release(order) => release(&mut client, order),
    }
}

fn assign(client: &mut Client, order: &PciAssign) -> Result<u8> {
    let (function, guest) = (order.function.clone(), order.guest.clone());
    let without_reset = order.reset == ResetPolicy::None;
    let (place, guest, progress) = change(client, RequestBody::PciAssign { function, guest, without_reset })?;
    let (address, since) = (address(place), since(progress));
    match order.format.json {
        true => {
            let line = serde_json::json!({ "place": place, "guest": guest, "done": "assigned", "progress": progress });
            println!("{line}");
        }
        false => println!("PCI function {address} is assigned to guest '{guest}', {since}"),
    }
    Ok(DONE)
}

fn since(progress: PciProgress) -> &'static str {
    if progress == PciProgress::NextStart { "from its next start on" } else { "which has it now" }
}

fn release(client: &mut Client, order: &PciRelease) -> Result<u8> {
    let (function, guest) = (order.function.clone(), order.guest.clone());
    let body = RequestBody::PciRelease { function, guest, is_forced: order.force };
    let (place, guest, progress) = change(client, body)?;
    if progress == PciProgress::Asked {
        wait_for_guest(client, place, &guest, order.timeout)?;
    }
    match order.format.json {
        true => println!("{}", serde_json::json!({ "place": place, "guest": guest, "done": "released" })),
        false => println!("PCI function {} is released from guest '{guest}'", address(place)),
    }
    Ok(DONE)
}

/// Waits until a guest that was asked to eject a function has it no more.
fn wait_for_guest(client: &mut Client, place: Place, guest: &str, seconds: u32) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        let (_, functions) = client.pci()?;
        let found = functions.iter().find(|function| function.place == place);
        if found.is_none_or(|function| function.owner.as_deref() != Some(guest)) {
            return Ok(());
        }
        if Instant::now() >= end {
            let function = address(place);
            bail!(
                "guest '{guest}' was asked to eject PCI function {function}, and has not within {seconds} s; it still \
                 may, or `baton pci release {function} {guest} --force` takes the function away"
            );
        }
        sleep(POLL_INTERVAL);
    }
}

fn change(client: &mut Client, body: RequestBody) -> Result<(Place, String, PciProgress)> {
    match client.request(body)? {
        ReplyBody::PciAssignment { place, guest, progress } => Ok((place, guest, progress)),
        other => bail!("the host answered something else ({other:?}); use tool and host of one release"),
    }
}

fn list(client: &mut Client, format: Format) -> Result<u8> {
    let (survey, functions) = client.pci()?;
    let units = client.iommus()?;
    if format.json {
        for function in &functions {
            println!("{}", serde_json::to_string(function)?);
        }
        println!("{}", serde_json::to_string(&survey)?);
        for unit in &units {
            println!("{}", serde_json::to_string(unit)?);
        }
    } else {
        println!("{}\n{}\n{}", table(&functions), summary(&survey, functions.len()), isolation(&units));
    }
    Ok(DONE)
}

fn table(functions: &[PciFunction]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["PLACE", "ID", "CLASS", "GROUP", "GUEST", "ACCESSES", "CYCLES", "REGISTERS"]);
    for function in functions {
        let (id, class) = (id(function), class(function));
        let PciCost { accesses, ticks } = function.cost;
        let group = function.group.map_or_else(String::new, |group| group.to_string());
        let owner = function.owner.clone().unwrap_or_default();
        let (accesses, ticks) = (accesses.to_string(), ticks.to_string());
        table.add_row([address(function.place), id, class, group, owner, accesses, ticks, remarks(function)]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if NUMBERS.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn address((segment, bus, device, number): Place) -> String {
    format!("{segment:04x}:{bus:02x}:{device:02x}.{number:x}")
}

fn id(function: &PciFunction) -> String {
    format!("{:04x}:{:04x}", function.vendor, function.device)
}

fn class(function: &PciFunction) -> String {
    let (base, sub, interface) = function.class;
    format!("{base:02x}{sub:02x}{interface:02x}")
}

/// Formats a function's bridge, ranges, known capabilities, virtual functions and problems.
fn remarks(function: &PciFunction) -> String {
    let bridge = function.bus_behind.map(|bus| format!("bridge to bus {bus:02x}"));
    let ranges = function.ranges.iter().map(range);
    let names = [(0x05, "MSI"), (0x11, "MSI-X"), (0x10, "Express")];
    let capabilities =
        names.iter().filter(|(id, _)| function.capabilities.contains(id)).map(|(_, name)| (*name).into());
    let all = bridge.into_iter().chain(ranges).chain(capabilities);
    let all = all.chain(function.virtual_functions.iter().map(virtual_functions));
    let all = all.chain(function.problems.iter().cloned());
    all.collect::<Vec<String>>().join(", ")
}

fn virtual_functions(all: &PciVirtualFunctions) -> String {
    let PciVirtualFunctions { total, places, problem } = all;
    let places = places.map_or_else(String::new, |[first, last]| format!(" ({} to {})", address(first), address(last)));
    let problem = problem.as_ref().map_or_else(String::new, |problem| format!(", which cannot be used: {problem}"));
    let total = if *total == 0 { String::new() } else { format!("{total} ") };
    format!("{total}virtual functions{places}{problem}")
}

fn range(range: &PciRange) -> String {
    let space = if range.is_ports { "ports" } else { "memory" };
    format!("{space} at {:#x}", range.address)
}

fn summary(survey: &PciSurvey, listed: usize) -> String {
    let spent = |cost: PciCost| format!("{} accesses in {} cycles", cost.accesses, cost.ticks);
    let progress = if survey.is_complete { "" } else { " so far" };
    let policy = survey.policy;
    let mut text = format!("{} functions probed{progress} (pci={policy}): {}", survey.functions, spent(survey.total));
    if let Some(before) = survey.before_guests {
        text += &format!(", of which {} before the first guest started", spent(before));
    }
    if survey.functions as usize > listed {
        text += &format!("; the host keeps {listed} of them");
    }
    text
}

/// Describes the IOMMUs, one line for each.
fn isolation(units: &[IommuUnit]) -> String {
    if units.is_empty() {
        return "no IOMMU: functions can reach all memory, and none can be a guest's".to_owned();
    }
    let line = |unit: &IommuUnit| {
        let (kind, registers, refused) = (unit.kind, unit.registers, unit.refused);
        match &unit.problem {
            None => format!("{kind} at {registers:#x} isolates the functions behind it; {refused} accesses refused"),
            Some(problem) => format!("{kind} at {registers:#x} isolates nothing: {problem}"),
        }
    };
    units.iter().map(line).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use wire::{IommuKind, PciPolicy};

    use super::*;

    fn network() -> PciFunction {
        PciFunction {
            place: (0, 1, 0, 2),
            vendor: 0x8086,
            device: 0x100e,
            class: (2, 0, 0),
            revision: 3,
            bus_behind: None,
            ranges: vec![
                PciRange { is_ports: false, address: 0xfeb8_0000 },
                PciRange { is_ports: true, address: 0xc040 },
            ],
            capabilities: vec![1, 5],
            problems: vec!["its capability list comes back to 0x40".to_owned()],
            cost: PciCost { accesses: 31, ticks: 9000 },
            owner: Some("web".to_owned()),
            group: Some(7),
            virtual_functions: None,
        }
    }

    #[test]
    fn a_function_is_a_row() {
        let text = table(&[network()]).to_string();
        let row = text.lines().nth(1).expect("a row");
        let words = "0000:01:00.2 8086:100e 020000 7 web 31 9000 memory at 0xfeb80000, ports at 0xc040, MSI, its capability \
                     list comes back to 0x40";
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), words.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn virtual_functions_are_named_or_why_there_are_none() {
        let (places, problem) = (Some([(0, 1, 0, 1), (0, 1, 0, 4)]), Some("two are one".to_owned()));
        let all = PciVirtualFunctions { total: 4, places, problem: None };
        assert_eq!(virtual_functions(&all), "4 virtual functions (0000:01:00.1 to 0000:01:00.4)");
        let none = PciVirtualFunctions { total: 4, places: None, problem };
        assert_eq!(virtual_functions(&none), "4 virtual functions, which cannot be used: two are one");
    }

    #[test]
    fn the_summary_has_the_cost_before_guests_and_in_all() {
        let total = PciCost { accesses: 1700, ticks: 5_000_000 };
        let (policy, before_guests) = (PciPolicy::Lazy, Some(PciCost::default()));
        let survey = PciSurvey { policy, is_complete: true, functions: 57, before_guests, total };
        assert_eq!(
            summary(&survey, 57),
            "57 functions probed (pci=lazy): 1700 accesses in 5000000 cycles, of which 0 accesses in 0 cycles before \
             the first guest started"
        );
        let under_way = PciSurvey { is_complete: false, before_guests: None, functions: 2000, ..survey };
        assert_eq!(
            summary(&under_way, 1024),
            "2000 functions probed so far (pci=lazy): 1700 accesses in 5000000 cycles; the host keeps 1024 of them"
        );
    }

    #[test]
    fn an_iommu_is_a_line_with_the_isolation_that_it_gives() {
        assert!(isolation(&[]).starts_with("no IOMMU: "));
        let on = IommuUnit { kind: IommuKind::VtD, segment: 0, registers: 0xfed9_0000, problem: None, refused: 3 };
        let off = IommuUnit { problem: Some("it lacks paging".to_owned()), ..on.clone() };
        let text = isolation(&[on, off]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "VT-d at 0xfed90000 isolates the functions behind it; 3 accesses refused");
        assert_eq!(lines[1], "VT-d at 0xfed90000 isolates nothing: it lacks paging");
    }
}
