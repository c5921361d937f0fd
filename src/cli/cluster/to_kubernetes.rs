//! `submit --on kubernetes`.

use super::submit::{Batch, Document};
use crate::cli::failure::Failure;

pub(super) fn submit(_batch: &Batch) -> Result<Document, Failure> {
    Err(Failure::Usage("later".to_owned()))
}
