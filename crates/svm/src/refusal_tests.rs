// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;

use super::*;

fn good() -> Box<Vmcb> {
    let mut vmcb = Box::new(Vmcb::zeroed());
    vmcb.control.intercept_misc2 = Misc2::VMRUN;
    vmcb.control.asid = 1;
    vmcb.save.efer = efer::SVME | efer::LME | efer::LMA;
    (vmcb.save.cr0, vmcb.save.cr4) = (cr0::PE | cr0::PG, cr4::PAE);
    vmcb.save.segments[1].attributes = 0xa9b;
    vmcb.save.g_pat = 0x0007_0406_0007_0406;
    vmcb
}

fn found(spoil: impl FnOnce(&mut Vmcb)) -> &'static str {
    let mut vmcb = good();
    assert_eq!(reason(&vmcb), None);
    spoil(&mut vmcb);
    reason(&vmcb).expect("a reason")
}

#[test]
fn each_consistency_check_is_named() {
    assert_eq!(found(|v| v.save.efer = 0), "EFER.SVME is clear");
    assert_eq!(found(|v| v.save.cr0 |= CR0_NW), "CR0.NW is set without CR0.CD");
    assert_eq!(found(|v| v.save.cr0 |= 1 << 32), "CR0 has a bit above 31");
    assert_eq!(found(|v| v.save.cr3 = 1 << 63), "CR3 has a reserved bit");
    assert_eq!(found(|v| v.save.cr4 |= 1 << 31), "CR4 has a reserved bit");
    assert_eq!(found(|v| v.save.dr6 = 1 << 32), "DR6 has a bit above 31");
    assert_eq!(found(|v| v.save.dr7 = 1 << 63), "DR7 has a bit above 31");
    assert_eq!(found(|v| v.save.efer |= 1 << 1), "EFER has a reserved bit");
    assert_eq!(found(|v| v.save.cr4 = 0), "long mode without CR4.PAE");
    assert_eq!(found(|v| v.save.cr0 = cr0::PG), "long mode without CR0.PE");
    assert_eq!(found(|v| v.save.segments[1].attributes |= DEFAULT_SIZE), "its code segment is of 64 and of 32 bits");
    assert_eq!(found(|v| v.control.intercept_misc2 = Misc2::empty()), "VMRUN is not intercepted");
    assert_eq!(found(|v| v.control.asid = 0), "its ASID is 0");
    assert_eq!(found(|v| v.save.g_pat = 2), "PAT has a memory type that does not exist");
}

#[test]
fn an_event_of_a_reserved_type_and_an_exception_that_is_none_are_named() {
    let event = EventInjection::new().with_is_valid(true);
    for bad in
        [event.with_kind(1), event.with_kind(event_type::EXCEPTION).with_vector(2), event.with_kind(3).with_vector(32)]
    {
        assert_eq!(found(|v| v.control.event_injection = bad), "its event cannot be injected");
    }
    let mut vmcb = good();
    vmcb.control.event_injection = event.with_kind(event_type::NMI).with_vector(2);
    assert_eq!(reason(&vmcb), None);
}
