"""placeholder"""
class StablehloProgram: pass
