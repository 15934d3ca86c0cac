"""WordLM Lab's library: tiny language models and the lenses that look inside them.

No streamlit and no plotly in here. Submodules are imported by name; importing the package
itself loads nothing, and only training loads torch.
"""
