"""Audits: what tests are worth (`audit_task`), and what looks suspicious in a run (`audit_run`).

See docs/audit.md.
"""

from .run import CandidateAudit, RunAudit, audit_run
from .task import (
    AttackAudit,
    MutantAudit,
    ProgramAudit,
    Runner,
    TaskAudit,
    TestAudit,
    audit_task,
)

__all__ = [
    "AttackAudit",
    "CandidateAudit",
    "MutantAudit",
    "ProgramAudit",
    "RunAudit",
    "Runner",
    "TaskAudit",
    "TestAudit",
    "audit_run",
    "audit_task",
]
