//! The top level of the command line. Each command's own arguments are in its file.

use clap::{Parser, Subcommand};

use super::backup::{BackupArguments, RestoreArguments};
use super::check::CheckArguments;
use super::completions::CompletionsArguments;
use super::demo::DemoArguments;
use super::deposit::{PublishArguments, PutArguments};
use super::explain::ExplainArguments;
use super::full_text_worker::{COMMAND as FULL_TEXT_WORKER, FullTextWorkerArguments};
use super::health::HealthArguments;
use super::manual::ManualArguments;
use super::mirror::MirrorArguments;
use super::notify::NotifyArguments;
use super::onboard::OnboardArguments;
use super::plan::PlanArguments;
use super::quarantine::QuarantineArguments;
use super::repair::RepairArguments;
use super::report::ReportArguments;
use super::search::SearchArguments;
use super::serve::ServeArguments;
use super::tape::TapeArguments;
use super::token::TokenArguments;
use super::validate::ValidateArguments;
use super::xslt_worker::{COMMAND as XSLT_WORKER, XsltWorkerArguments};

/// A transparent repair proxy for OAI-PMH: broken metadata pages in, valid ones out.
#[derive(Debug, Parser)]
#[command(
    name = "oaimend",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = ENVIRONMENT
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The variables of the environment, in the form of the other sections of the help.
const ENVIRONMENT: &str = "Environment:
  OAIMEND_LOG  Filters the log of `serve`, with the syntax of RUST_LOG, such as debug or
               info,oaimend_upstream=debug [default: info]
  OAIMEND_TOKEN  The write token of `put` and `publish` without --token-file";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArguments),
    Serve(ServeArguments),
    Repair(RepairArguments),
    Onboard(OnboardArguments),
    Check(CheckArguments),
    Mirror(MirrorArguments),
    Tape(TapeArguments),
    Plan(PlanArguments),
    Search(SearchArguments),
    Put(PutArguments),
    Publish(PublishArguments),
    Token(TokenArguments),
    Quarantine(QuarantineArguments),
    Notify(NotifyArguments),
    Report(ReportArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
    Health(HealthArguments),
    Validate(ValidateArguments),
    Explain(ExplainArguments),
    Completions(CompletionsArguments),
    Manual(ManualArguments),
    #[command(name = FULL_TEXT_WORKER, hide = true)]
    FullTextWorker(FullTextWorkerArguments),
    #[command(name = XSLT_WORKER, hide = true)]
    XsltWorker(XsltWorkerArguments),
}
