"""Trying policies on requests nobody made: where they are tried, which requests, and what can be told without any.

trial, tree          a session in which nothing has happened yet; a disk that is described
drafting, hazards    requests from what policies say; what programs can be made to do beside
standins, covering   a few actions for all a rule can be about; whether a rule holds wherever another does
"""
