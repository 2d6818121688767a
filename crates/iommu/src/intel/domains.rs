// SPDX-License-Identifier: MIT OR Apache-2.0
//! Domains as one unit can translate them: created, and adopted from a context entry.

use paging::{Entry, Format};
use pci::Bdf;

use crate::domain::{Domain, DomainId};
use crate::hardware::{Memory, Registers};
use crate::intel::coherence::WrittenBack;
use crate::intel::format::SecondStage;
use crate::intel::tables::root_of;
use crate::intel::unit::Unit;
use crate::problem::Problem;

impl<R: Registers> Unit<R> {
    /// Creates a domain that maps nothing, with the unit's address limit and page sizes.
    ///
    /// # Errors
    /// [`Problem::Lacks`] if the unit has no such identifier, [`Problem::OutOfMemory`].
    pub fn create_domain<M: Memory>(&self, memory: &mut M, id: DomainId) -> Result<Domain<SecondStage>, Problem> {
        if !self.capabilities.has_domain(id) {
            return Err(Problem::Lacks { feature: "a domain identifier of this number (CAP.ND)" });
        }
        let largest = self.largest_page();
        let domain = match self.is_coherent() {
            true => Domain::new(id, memory, largest),
            false => Domain::new(id, &mut WrittenBack(memory), largest),
        };
        Ok(domain?.with_limit(self.address_limit()))
    }

    /// Returns the domain to which a function is attached, by its context entry; `None` if it is blocked.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NotAdopted`] if a top table of three levels does not name the domain's root.
    pub fn adopt_domain(&self, memory: &impl Memory, source: Bdf) -> Result<Option<Domain<SecondStage>>, Problem> {
        self.check(source)?;
        let context = self.contexts.get(memory, source.requester());
        if !context.is_present() {
            return Ok(None);
        }
        let root = match self.capabilities.has_four_levels() {
            true => context.top(),
            false => {
                let root = root_of(memory, context.top());
                if SecondStage::decode(memory.read(root, 0), 4) != Entry::Table(context.top()) {
                    let reason = "the top table of three levels does not name its domain's root";
                    return Err(Problem::NotAdopted { reason });
                }
                root
            }
        };
        let domain = Domain::adopt(context.domain(), root, self.largest_page());
        Ok(Some(domain.with_limit(self.address_limit())))
    }
}
