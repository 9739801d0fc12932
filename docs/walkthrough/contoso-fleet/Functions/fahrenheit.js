function main(celsius) {
    return celsius * 9 / 5 + 32;
}
