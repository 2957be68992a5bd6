import "./graph_view.css";
