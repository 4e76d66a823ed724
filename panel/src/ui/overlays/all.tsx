// The chunk of everything that floats. Only ui/overlays.ts imports it.
export { Dialog } from './dialog'
export { Menu } from './menu'
export { Picker } from './picker'
