// Scales a picture down to 256 pixels, as the service stores it. Also strips camera metadata.
const SIDE = 256
const TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export async function pictureOf(file: File): Promise<{ base64: string | null; problem: string | null }> {
  if (!TYPES.includes(file.type)) return { base64: null, problem: 'Choose a PNG, JPEG, WebP or GIF.' }
  try {
    const bitmap = await createImageBitmap(file)
    const side = Math.min(bitmap.width, bitmap.height)
    const canvas = document.createElement('canvas')
    canvas.width = SIDE
    canvas.height = SIDE
    const [left, top] = [(bitmap.width - side) / 2, (bitmap.height - side) / 2]
    canvas.getContext('2d')?.drawImage(bitmap, left, top, side, side, 0, 0, SIDE, SIDE)
    bitmap.close()
    return { base64: canvas.toDataURL('image/png').split(',')[1] ?? null, problem: null }
  } catch {
    return { base64: null, problem: 'This file can’t be read as a picture. Choose another one.' }
  }
}
