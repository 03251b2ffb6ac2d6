//! Views: subject gateways with exact membership.
//!
//! A view is a repository of the records that its definition chooses. It knows for each record whether it is a member or
//! has left, so that an incremental harvester of the view learns of both. `definition` says what a view contains,
//! `follower` judges the commits of the mirror, `membership` is what lists read, `shown` what pages read, and `views` opens a
//! view for a request.
//!
//! - A record that changes gets a new stamp by the mirror. The change of its membership has the same stamp.
//! - A list ends at the last commit that the follower knows, and has no later responseDate.
//! - A change of the definition is a commit with a stamp T of its own. A new generation of members is read from the
//!   mirror while the old one answers. When it replaces the old one, the members that are none any more have left, and T
//!   is the lowest datestamp of all members.

mod definition;
mod follower;
mod known_sets;
mod membership;
mod shown;
mod views;

pub use definition::ViewSettings;
pub use shown::{FoundMember, LiveMember, NewestMember};
pub use views::SubjectViews;
