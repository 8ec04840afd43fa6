"""What tests of several packages share: throwaway etcds, processes, builders."""
