"""Work that is done in processes of its own, never in the server's. No Streamlit here."""
