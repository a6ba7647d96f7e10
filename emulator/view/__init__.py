"""What people look at: the lane table, the story of one ISR change, the page. Made from the
trace and nothing else.
"""
