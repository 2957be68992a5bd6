/** Files of models as documents: a double click on one shows its view, without a notebook. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ToolbarButton } from "@jupyterlab/apputils";
import { ABCWidgetFactory, Base64ModelFactory, DocumentWidget, type DocumentRegistry } from "@jupyterlab/docregistry";
import { ModelView } from "./model_view.js";
import { cellFor } from "./model_cells.js";

const FACTORY = "Flowscope";
/** The model of a document whose file the browser does not load: a kernel reads it. */
const UNREAD = "flowscope-unread";
const FILE_TYPES = [
  { name: "flowscope-onnx", displayName: "ONNX Model", extensions: [".onnx"] },
  { name: "flowscope-graph", displayName: "TensorFlow Graph", extensions: [".pb"] },
] as const;

export const documentsPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:documents",
  description: "Opens files of ONNX and TensorFlow as views of their graphs.",
  autoStart: true,
  activate: (app: JupyterFrontEnd) => {
    const { docRegistry } = app;
    for (const type of FILE_TYPES) {
      docRegistry.addFileType({ ...type, extensions: [...type.extensions], mimeTypes: ["application/octet-stream"], contentType: "file", fileFormat: null, iconClass: "fs-icon" });
    }
    const names = FILE_TYPES.map(({ name }) => name);
    docRegistry.addModelFactory(new UnreadFactory());
    docRegistry.addWidgetFactory(new Factory(app, { name: FACTORY, modelName: UNREAD, fileTypes: names, defaultFor: names, readOnly: true }));
  },
};

class UnreadFactory extends Base64ModelFactory {
  override get name(): string {
    return UNREAD;
  }

  override get fileFormat(): null {
    return null;
  }
}

class Factory extends ABCWidgetFactory<DocumentWidget<ModelView>> {
  readonly #app: JupyterFrontEnd;

  constructor(app: JupyterFrontEnd, options: DocumentRegistry.IWidgetFactoryOptions<DocumentWidget<ModelView>>) {
    super(options);
    this.#app = app;
  }

  protected createNewWidget(context: DocumentRegistry.Context): DocumentWidget<ModelView> {
    const { sessions, kernelspecs } = this.#app.serviceManager;
    const content = new ModelView(context.path, async (path) => {
      await kernelspecs.ready;
      const kernel = { name: kernelspecs.specs?.default ?? "python3" };
      return sessions.startNew({ path, name: partsOf(path).name, type: "file", kernel });
    });
    const widget = new DocumentWidget({ content, context });
    widget.toolbar.addItem("notebook", new ToolbarButton({
      label: "New notebook with this model", tooltip: "A notebook beside the file, whose cell loads the model and shows it live",
      onClick: () => void this.#newNotebook(context.path),
    }));
    return widget;
  }

  /** Makes a notebook in the folder of a model, and opens it. */
  async #newNotebook(path: string): Promise<void> {
    const { contents, kernelspecs } = this.#app.serviceManager;
    await kernelspecs.ready;
    const found = kernelspecs.specs?.kernelspecs[kernelspecs.specs.default];
    const kernelspec = found && { name: found.name, display_name: found.display_name, language: found.language };
    const { folder, name } = partsOf(path);
    const made = await contents.newUntitled({ path: folder, type: "notebook" });
    const cell = { cell_type: "code", execution_count: null, id: "model", metadata: {}, outputs: [], source: cellFor(name) };
    const content = { cells: [cell], metadata: kernelspec ? { kernelspec } : {}, nbformat: 4, nbformat_minor: 5 };
    await contents.save(made.path, { ...made, format: "json", type: "notebook", content });
    await this.#app.commands.execute("docmanager:open", { path: made.path });
  }
}

export function partsOf(path: string): { readonly folder: string; readonly name: string } {
  const at = path.lastIndexOf("/");
  return { folder: path.slice(0, Math.max(0, at)), name: path.slice(at + 1) };
}
