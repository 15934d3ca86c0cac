"""What the pages share: state, controls, figures and layout of the Streamlit app."""
