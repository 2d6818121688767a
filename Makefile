# SPDX-License-Identifier: MIT OR Apache-2.0
# The front door; `make` alone lists what there is. The work is in scripts/.

CARGO ?= cargo
# Bare-metal packages: built for their own target by scripts/build.sh, not among the host's.
HOST_PACKAGES := --workspace --exclude hypervisor --exclude tiny

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-all bench clean

help: ## list these targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## boot Baton in QEMU with a stock Debian kernel as its guest (sets the machine up the first time)
	@scripts/setup.sh demo
	@scripts/build.sh hypervisor
	@scripts/build.sh guests
	@$(CARGO) baton demo

docs: ## render the user's guide as a site and as manual pages, under target/docs (installs pandoc the first time)
	@scripts/setup.sh docs
	@scripts/docs.sh

test: ## every check: format, clippy, unit and property tests, boots in QEMU (sets the machine up the first time)
	@scripts/setup.sh test
	@scripts/test.sh $(HOST_PACKAGES)

test-all: ## the same, soaks and long forms, for hours; goes on where it was left; PART=NAME runs one part
	@scripts/setup.sh all
	@scripts/test-all.sh $(HOST_PACKAGES)

bench: ## measure, baseline beside improvement, one JSON object per line
	@scripts/setup.sh test
	@scripts/build.sh
	@$(CARGO) baton bench all --json

clean: ## remove everything built and everything set-up put under target/
	rm -rf target
