//! `--figures DIR` writes each figure as an SVG and as a PNG file.

use std::path::Path;

use super::file::write;
use crate::cli::failure::Failure;
use crate::cli::replace::{Overwrite, begins_with, cannot_write};
use crate::cli::stderr;
use crate::report::html::{FigureFile, PICTURE_MARK, PageError, Pictures};
use crate::units::text::counted;

/// Writes figures into a folder, and creates it if necessary. No figure is written if a file of another
/// program would be replaced.
pub(super) fn write_all(folder: &Path, figures: &[FigureFile], overwrite: Overwrite) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(Some(folder), &error))?;
    let path = |figure: &FigureFile, ending: &str| folder.join(format!("{}.{ending}", figure.name));
    for figure in figures {
        let is_drawing =
            |path: &Path| begins_with(path, |text| text.starts_with("<!-- figure of a sweepline report -->"));
        let is_picture = |path: &Path| begins_with(path, |text| text.contains(PICTURE_MARK));
        overwrite.check(&path(figure, "svg"), "a figure of a report", is_drawing)?;
        overwrite.check(&path(figure, "png"), "a figure of a report", is_picture)?;
    }
    let pictures = Pictures::new();
    for figure in figures {
        write(&path(figure, "svg"), figure.svg.as_bytes())?;
        let png =
            pictures.png(&figure.svg, &figure.title).map_err(|error: PageError| Failure::Unexpected(error.into()))?;
        write(&path(figure, "png"), &png)?;
    }
    stderr::complain(&format!("{}: {}, as SVG and PNG", folder.display(), counted(figures.len(), "figure")));
    Ok(())
}
