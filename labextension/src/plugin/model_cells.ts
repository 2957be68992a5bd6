/** Programs that read models, as cells of notebooks. Pure. */

/** A text as Python writes it. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A cell that loads the model in a file of its folder, and shows it. */
export function cellFor(name: string): string {
  const file = pythonText(name);
  const lines = name.toLowerCase().endsWith(".onnx")
    ? [`model = fs.onnx.load(${file})`, "fs.show(model.graph)"]
    : name === "saved_model.pb" ? [`model = fs.saved_model.load(".")`, "fs.show(model.graph)"]
      : [`fs.import_graph_def(fs.io.read_graph(${file}), name="")`, "fs.show()"];
  return ["import flowscope as fs", "", ...lines].join("\n");
}

/** What a kernel runs to read a model and send its picture. */
export function questionFor(name: string): string {
  return `from flowscope_widgets.model_document import send_model\nsend_model(${pythonText(name)})`;
}
