/** The widget's entry, as anywidget reads it: a default export and nothing else. */
import { render } from "./view/mount.js";

export default { render };
