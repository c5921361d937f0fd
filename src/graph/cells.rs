//! The cells of a drawn graph that have not (yet) become runs, because they depend on the findings
//! of earlier sweeps.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::expand::{Cell, Expansion, Pending};
use crate::units::text::counted;

use super::drawn::{DRAWN_RUNS, Drawing, DrawnNode};

/// Adds the cells that have not (yet) become runs. A cell is placed after the gates of all sweeps
/// that its sweep waits for, including the sweeps whose findings it uses, and before the gate of
/// its own sweep. If a sweep has many cells, similar cells are drawn as one node.
pub(super) fn add_cells(drawing: &mut Drawing, expansion: &Expansion, gates: &HashMap<&str, usize>) {
    let mut by_sweep: IndexMap<&str, Vec<&Pending>> = IndexMap::new();
    for pending in &expansion.pending {
        by_sweep.entry(&pending.sweep).or_default().push(pending);
    }
    for (sweep, cells) in by_sweep {
        let nodes: Vec<DrawnNode> = match cells.len() > DRAWN_RUNS {
            true => several_cells(sweep, &cells),
            false => cells.into_iter().map(waiting_cell).collect(),
        };
        let before: Vec<usize> =
            expansion.after[sweep].iter().filter_map(|other| gates.get(other.as_str()).copied()).collect();
        for node in nodes {
            let at = drawing.nodes.len();
            drawing.nodes.push(node);
            drawing.edges.extend(before.iter().map(|gate| (*gate, at)));
            drawing.edges.extend(gates.get(sweep).map(|gate| (at, *gate)));
        }
    }
}

/// The node of a cell that has not (yet) become a run.
fn waiting_cell(pending: &Pending) -> DrawnNode {
    DrawnNode {
        kind: "cell",
        label: format!("{}: {}", pending.sweep, cell_label(&pending.cell)),
        count: pending.repeats as usize,
        state: Some(pending.state.name()),
        said: Some(pending.why.clone()),
        ..DrawnNode::default()
    }
}

/// The nodes of a sweep with many cells: one node for each combination of state and reason.
fn several_cells(sweep: &str, cells: &[&Pending]) -> Vec<DrawnNode> {
    let mut alike: IndexMap<(&'static str, &str), Vec<&Pending>> = IndexMap::new();
    for cell in cells {
        alike.entry((cell.state.name(), &cell.why)).or_default().push(cell);
    }
    let one = |((state, why), cells): ((&'static str, &str), Vec<&Pending>)| match cells[..] {
        [only] => waiting_cell(only),
        _ => DrawnNode {
            kind: "cell",
            label: format!("{sweep}: {}, drawn as one", counted(cells.len(), "cell")),
            count: cells.iter().map(|cell| cell.repeats as usize).sum(),
            state: Some(state),
            said: Some(why.to_owned()),
            ..DrawnNode::default()
        },
    };
    alike.into_iter().map(one).collect()
}

/// The label of a cell: each axis with its value.
pub(super) fn cell_label(cell: &Cell) -> String {
    cell.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ")
}
