"""The words of a program taken apart as the program would: options, values, operands, languages of its own.

One table says what each program does with its words (`programs`); what no table can say is code here.
"""
