// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn what_a_guest_raises_is_delivered_with_the_same_vector_and_code() {
    for vector in (0..32).filter(|vector| ![vector::NMI, vector::MC].contains(vector)) {
        let raised = Exception::raised(vector, 0x18, 0x7000).expect("an exception of the guest's own");
        let has_code = [8, 10, 11, 12, 13, 14, 17].contains(&vector);
        assert_eq!((raised.vector(), raised.error_code()), (vector, has_code.then_some(0x18)), "{raised:?}");
    }
    assert_eq!(Exception::raised(vector::PF, 2, 0x7000), Some(Exception::PageFault { code: 2, address: 0x7000 }));
}

#[test]
fn neither_an_nmi_nor_a_machine_check_is_the_guests() {
    assert_eq!(Exception::raised(vector::NMI, 0, 0), None);
    assert_eq!(Exception::raised(vector::MC, 0, 0), None);
}

#[test]
fn exceptions_that_handlers_raise_have_their_vectors() {
    let raised = [
        (Exception::DivideError, 0, None),
        (Exception::Debug, 1, None),
        (Exception::SingleStep, 1, None),
        (Exception::InvalidOpcode, 6, None),
        (Exception::StackFault(4), 12, Some(4)),
        (Exception::GeneralProtection(8), 13, Some(8)),
        (Exception::PageFault { code: 3, address: 9 }, 14, Some(3)),
    ];
    for (exception, vector, code) in raised {
        assert_eq!((exception.vector(), exception.error_code()), (vector, code), "{exception:?}");
    }
}

#[test]
fn no_exception_is_both_always_and_sometimes_left_for() {
    assert!((Exceptions::ALWAYS & Exceptions::FAULTS).is_empty());
    assert!(!Exceptions::FAULTS.has(vector::NMI) && !Exceptions::FAULTS.contains(Exceptions::DF));
}
